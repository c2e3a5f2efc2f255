//! Keyvals with copy and delete callbacks of the program.
//!
//! The backend calls callbacks of this library, with the backend's handles.
//! The library's callbacks find the program's callbacks in their extra state, a `Kept`.
//! Keyvals with equal copy callback, delete callback and extra state share one `Kept`.
//! A `Kept` is never freed, since attributes may outlive their keyvals.
#![allow(unsafe_code)]

use crate::backend;
use crate::convert::code_out;
use crate::family::{Family, Kind, Word};
use crate::lock::lock;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::sync::{Mutex, OnceLock};

/// The addresses of the program's callbacks, and the program's extra state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Functions {
    copy: usize,
    delete: usize,
    extra_state: usize,
}

/// Functions of MPICH's Fortran library that call Fortran callbacks.
/// The Fortran library sets them after it has created a keyval.
#[derive(Clone, Copy, Debug)]
struct Proxies {
    copy: usize,
    delete: usize,
}

/// The extra state that this library's callbacks receive from the backend.
#[derive(Debug)]
struct Kept {
    functions: Functions,
    /// Set if the callbacks are in Fortran. Keyvals with the same callbacks have the same proxies.
    proxies: OnceLock<Proxies>,
}

static KNOWN: Mutex<BTreeMap<Functions, &'static Kept>> = Mutex::new(BTreeMap::new());

thread_local! {
    /// The last keyval that this thread has created.
    static LAST: Cell<Option<(c_int, &'static Kept)>> = const { Cell::new(None) };
}

/// Returns the [`Kept`] with these functions, which exists until process exit.
fn kept(functions: Functions) -> &'static Kept {
    let mut known = lock(&KNOWN);
    known.entry(functions).or_insert_with(|| {
        let proxies = OnceLock::new();
        Box::leak(Box::new(Kept { functions, proxies }))
    })
}

/// Sets the proxies for the callbacks of `keyval`, if it is this thread's last keyval.
/// The types of the proxies are `CopyProxy` and `DeleteProxy`.
pub fn call_through(keyval: c_int, copy: usize, delete: usize) {
    if let Some((_, kept)) = LAST.get().filter(|(last, _)| *last == keyval) {
        // Fails if another keyval with the same callbacks has set the same proxies already.
        let _ = kept.proxies.set(Proxies { copy, delete });
    }
}

/// `MPI_COMM_DUP_FN` of the standard. In other ABIs it is the address of a function.
const DUPLICATE: usize = 1;

const COMM: u8 = 0;
const WIN: u8 = 1;
const DATATYPE: u8 = 2;

const fn kind(of: u8) -> Kind {
    match of {
        COMM => Kind::Comm,
        WIN => Kind::Win,
        _ => Kind::Datatype,
    }
}

type Copy<F> = unsafe extern "C-unwind" fn(
    <F as Family>::Handle,
    c_int,
    *mut c_void,
    *mut c_void,
    *mut c_void,
    *mut c_int,
) -> c_int;
type Delete<F> =
    unsafe extern "C-unwind" fn(<F as Family>::Handle, c_int, *mut c_void, *mut c_void) -> c_int;
/// The proxy's arguments:
/// the program's callback, object, keyval, extra state, value type, value, copy, flag.
type CopyProxy<F> = unsafe extern "C-unwind" fn(
    usize,
    <F as Family>::Handle,
    c_int,
    *mut c_void,
    c_int,
    *mut c_void,
    *mut c_void,
    *mut c_int,
) -> c_int;
/// The proxy's arguments: the program's callback, object, keyval, value type, value, extra state.
type DeleteProxy<F> = unsafe extern "C-unwind" fn(
    usize,
    <F as Family>::Handle,
    c_int,
    c_int,
    *mut c_void,
    *mut c_void,
) -> c_int;
/// The value type in MPICH for an attribute value that is an integer and not a pointer.
const ADDRESS_INTEGER: c_int = 1;

/// The copy callback that the backend receives. Calls the program's copy callback.
unsafe extern "C-unwind" fn copy<F: Family, const OF: u8>(
    object: F::Below,
    keyval: c_int,
    functions: *mut c_void,
    value: *mut c_void,
    copied: *mut c_void,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: the extra state was made by `kept` and is never freed.
    // The program's function has the type of the program's ABI.
    unsafe {
        let Kept { functions, proxies } = &*functions.cast::<Kept>();
        if functions.copy == DUPLICATE {
            copied.cast::<*mut c_void>().write(value);
            flag.write(1);
            return 0;
        }
        let object = F::handle_out(kind(OF), object);
        let keyval = F::word_out(Word::Keyval, keyval);
        let extra = functions.extra_state as *mut c_void;
        let code = match proxies.get() {
            Some(proxies) => {
                let proxy: CopyProxy<F> = std::mem::transmute(proxies.copy);
                let (of, function) = (ADDRESS_INTEGER, functions.copy);
                F::program(|| proxy(function, object, keyval, extra, of, value, copied, flag))
            }
            None => {
                let function: Copy<F> = std::mem::transmute(functions.copy);
                F::program(|| function(object, keyval, extra, value, copied, flag))
            }
        };
        F::word_in(Word::Error, code)
    }
}

/// The delete callback that the backend receives. Calls the program's delete callback.
unsafe extern "C-unwind" fn delete<F: Family, const OF: u8>(
    object: F::Below,
    keyval: c_int,
    value: *mut c_void,
    functions: *mut c_void,
) -> c_int {
    // SAFETY: the extra state was made by `kept` and is never freed.
    // The program's function has the type of the program's ABI.
    unsafe {
        let Kept { functions, proxies } = &*functions.cast::<Kept>();
        let object = F::handle_out(kind(OF), object);
        let keyval = F::word_out(Word::Keyval, keyval);
        let extra = functions.extra_state as *mut c_void;
        let code = match proxies.get() {
            Some(proxies) => {
                let proxy: DeleteProxy<F> = std::mem::transmute(proxies.delete);
                let (of, function) = (ADDRESS_INTEGER, functions.delete);
                F::program(|| proxy(function, object, keyval, of, value, extra))
            }
            None => {
                let function: Delete<F> = std::mem::transmute(functions.delete);
                F::program(|| function(object, keyval, value, extra))
            }
        };
        F::word_in(Word::Error, code)
    }
}

macro_rules! maker {
    ($name:ident<F: Family>, $of:ident) => {
        pub unsafe fn $name<F: Family>(
            copy_function: usize,
            delete_function: usize,
            keyval: *mut c_int,
            extra_state: *mut c_void,
        ) -> c_int {
            let functions = kept(Functions {
                copy: copy_function,
                delete: delete_function,
                extra_state: extra_state.addr(),
            });
            let given = |function: usize, ours: usize, nothing: usize| {
                if function == 0 { nothing } else { ours }
            };
            let (no_copy, no_delete) = F::no_functions(kind($of));
            let ours_copy: unsafe extern "C-unwind" fn(
                F::Below,
                c_int,
                *mut c_void,
                *mut c_void,
                *mut c_void,
                *mut c_int,
            ) -> c_int = copy::<F, $of>;
            let ours_delete: unsafe extern "C-unwind" fn(
                F::Below,
                c_int,
                *mut c_void,
                *mut c_void,
            ) -> c_int = delete::<F, $of>;
            let mut made = 0;
            // SAFETY: the MPI standard requires that the program passes valid arguments.
            let code = unsafe {
                (backend::$name::<F>())(
                    given(copy_function, ours_copy as usize, no_copy),
                    given(delete_function, ours_delete as usize, no_delete),
                    if keyval.is_null() {
                        std::ptr::null_mut()
                    } else {
                        &raw mut made
                    },
                    (&raw const *functions).cast_mut().cast(),
                )
            };
            if !keyval.is_null() {
                let made = F::word_out(Word::Keyval, made);
                LAST.set(Some((made, functions)));
                // SAFETY: the standard requires valid arguments for the exported function.
                unsafe { keyval.write(made) };
            }
            code_out::<F>(code)
        }
    };
}

maker!(MPI_Comm_create_keyval<F: Family>, COMM);
maker!(MPI_Keyval_create<F: Family>, COMM);
maker!(MPI_Win_create_keyval<F: Family>, WIN);
maker!(MPI_Type_create_keyval<F: Family>, DATATYPE);
