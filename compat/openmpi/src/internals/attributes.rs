//! Attributes of communicators, datatypes and windows with Fortran callbacks.
#![allow(unsafe_code)]
#![allow(clippy::missing_safety_doc, clippy::too_many_arguments)]

use super::{INTERN, SUCCESS};
use crate::entries::*;
use crate::family::{handle_of_standard, to_fortran};
use compat::Kind;
use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::sync::{Mutex, PoisonError};

/// Open MPI's constants for the types of objects that have attributes.
const OF_COMM: c_int = 1;
const OF_TYPE: c_int = 2;
const OF_WIN: c_int = 3;

/// The type of an attribute value in Fortran: an `INTEGER`, as in MPI-1, or an address.
trait Value: Copy + Default {
    fn of(value: isize) -> Self;
    fn whole(self) -> isize;
}

impl Value for c_int {
    fn of(value: isize) -> Self {
        value as Self
    }

    fn whole(self) -> isize {
        self as isize
    }
}

impl Value for isize {
    fn of(value: isize) -> Self {
        value
    }

    fn whole(self) -> isize {
        self
    }
}

/// The Fortran copy callback: object, key, extra state, value, copied value, flag, code.
type CopyFunction<T> = unsafe extern "C-unwind" fn(
    *mut c_int,
    *mut c_int,
    *mut T,
    *mut T,
    *mut T,
    *mut c_int,
    *mut c_int,
);
/// The Fortran delete callback: object, key, value, extra state, code.
type DeleteFunction<T> =
    unsafe extern "C-unwind" fn(*mut c_int, *mut c_int, *mut T, *mut T, *mut c_int);

/// The callbacks and the extra state of a Fortran keyval.
/// Never freed, since copies of attributes may outlive the keyval.
struct FortranKey<T> {
    kind: Kind,
    copy: CopyFunction<T>,
    delete: DeleteFunction<T>,
    extra: T,
}

/// The C copy callback, which calls the keyval's Fortran callback.
unsafe extern "C-unwind" fn copy_in_fortran<T: Value>(
    object: Handle,
    mut key: c_int,
    extra: *mut c_void,
    value: *mut c_void,
    copied: *mut c_void,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: the extra state is the `FortranKey` of the keyval, which is never freed.
    let made = unsafe { &*extra.cast::<FortranKey<T>>() };
    let (mut object, mut code, mut yes) = (to_fortran(made.kind, object), SUCCESS, 0);
    let (mut extra, mut value) = (made.extra, T::of(value.addr() as isize));
    let mut result = T::default();
    // SAFETY: the program passed a function with this signature.
    // All arguments are pointers to local variables.
    unsafe {
        (made.copy)(
            &mut object,
            &mut key,
            &mut extra,
            &mut value,
            &mut result,
            &mut yes,
            &mut code,
        );
        flag.write((yes != 0).into());
        copied.cast::<isize>().write(result.whole());
    }
    code
}

/// The C delete callback, which calls the keyval's Fortran callback.
unsafe extern "C-unwind" fn delete_in_fortran<T: Value>(
    object: Handle,
    mut key: c_int,
    value: *mut c_void,
    extra: *mut c_void,
) -> c_int {
    // SAFETY: the extra state is the `FortranKey` of the keyval, which is never freed.
    let made = unsafe { &*extra.cast::<FortranKey<T>>() };
    let (mut object, mut code) = (to_fortran(made.kind, object), SUCCESS);
    let (mut extra, mut value) = (made.extra, T::of(value.addr() as isize));
    // SAFETY: the program passed a function with this signature.
    // All arguments are pointers to local variables.
    unsafe { (made.delete)(&mut object, &mut key, &mut value, &mut extra, &mut code) };
    code
}

unsafe fn create_key<T: Value>(
    of: c_int,
    copy: CopyFunction<T>,
    delete: DeleteFunction<T>,
    key: *mut c_int,
    extra: T,
) -> c_int {
    let kind = match of {
        OF_COMM => Kind::Comm,
        OF_TYPE => Kind::Datatype,
        _ => Kind::Win,
    };
    let made = Box::leak(Box::new(FortranKey {
        kind,
        copy,
        delete,
        extra,
    }));
    let extra = std::ptr::from_mut(made).cast::<c_void>();
    let (copy, delete) = (
        copy_in_fortran::<T> as *const c_void as usize,
        delete_in_fortran::<T> as *const c_void as usize,
    );
    // SAFETY: `key` is an output argument of the program, valid by the standard.
    let (code, key) = unsafe {
        let code = match of {
            OF_COMM => PMPI_Comm_create_keyval(copy, delete, key, extra),
            OF_TYPE => PMPI_Type_create_keyval(copy, delete, key, extra),
            _ => PMPI_Win_create_keyval(copy, delete, key, extra),
        };
        (code, key.read())
    };
    if code == SUCCESS {
        let mut keys = KEYS.lock().unwrap_or_else(PoisonError::into_inner);
        keys.insert(key, of);
    }
    code
}

unsafe fn set(of: c_int, object: Handle, key: c_int, value: isize) -> c_int {
    let value = std::ptr::without_provenance_mut(value as usize);
    // SAFETY: the value is stored and never dereferenced.
    unsafe {
        match of {
            OF_COMM => PMPI_Comm_set_attr(object, key, value),
            OF_TYPE => PMPI_Type_set_attr(object, key, value),
            OF_WIN => PMPI_Win_set_attr(object, key, value),
            _ => INTERN,
        }
    }
}

/// Returns an attribute value. `table` is the standard's handle, read from the object's field for
/// the attribute table.
unsafe fn get(table: usize, key: c_int, flag: *mut c_int) -> (c_int, isize) {
    let mut value: *mut c_void = std::ptr::null_mut();
    let place = (&raw mut value).cast::<c_void>();
    // SAFETY: `flag` is valid by the caller's contract. The other outputs are local variables.
    unsafe {
        flag.write(0);
        let code = match kind_of_key(key) {
            OF_TYPE => {
                PMPI_Type_get_attr(handle_of_standard(Kind::Datatype, table), key, place, flag)
            }
            OF_WIN => PMPI_Win_get_attr(handle_of_standard(Kind::Win, table), key, place, flag),
            _ => PMPI_Comm_get_attr(handle_of_standard(Kind::Comm, table), key, place, flag),
        };
        let found = flag.read() != 0 && !value.is_null();
        // In C, the value of a predefined key is the integer's address, except for a window's base.
        let value = match key {
            FIRST_KEY..=LAST_OF_COMMS | DISP_UNIT..=LAST_KEY | FT if found => {
                value.cast::<c_int>().read() as isize
            }
            WIN_SIZE if found => value.cast::<isize>().read(),
            _ => value.addr() as isize,
        };
        (code, value)
    }
}

/// Open MPI's predefined keyvals: `MPI_TAG_UB` to `MPI_UNIVERSE_SIZE`, then
/// `MPI_WIN_BASE` to `MPI_WIN_MODEL`.
const FIRST_KEY: c_int = 0;
const LAST_OF_COMMS: c_int = 6;
const WIN_SIZE: c_int = 8;
const DISP_UNIT: c_int = 9;
const LAST_KEY: c_int = 11;
/// `MPI_FT`, another predefined keyval of communicators (an extension of Open MPI).
const FT: c_int = 12;

/// The type of object of each keyval that Fortran has created for datatypes or windows.
/// The handle in an attribute table does not show this type.
static KEYS: Mutex<BTreeMap<c_int, c_int>> = Mutex::new(BTreeMap::new());

fn kind_of_key(key: c_int) -> c_int {
    match key {
        FIRST_KEY..=LAST_OF_COMMS => OF_COMM,
        ..=LAST_KEY => OF_WIN,
        _ => {
            let keys = KEYS.lock().unwrap_or_else(PoisonError::into_inner);
            keys.get(&key).copied().unwrap_or(OF_COMM)
        }
    }
}

/// Defines the functions that Open MPI's Fortran libraries call, for both value types.
macro_rules! called_by_fortran_libraries {
    ($($value:ty: $create:ident $set:ident $get:ident;)*) => { $(
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $create(
            of: c_int,
            copy: CopyFunction<$value>,
            delete: DeleteFunction<$value>,
            key: *mut c_int,
            extra: $value,
            _flags: c_int,
            _bindings: *mut c_void,
        ) -> c_int {
            // SAFETY: the Fortran library passes arguments that are valid by the standard.
            unsafe { create_key::<$value>(of, copy, delete, key, extra) }
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $set(
            of: c_int,
            object: Handle,
            _table: *mut c_void,
            key: c_int,
            value: $value,
            _predefined: bool,
        ) -> c_int {
            // SAFETY: the Fortran library passes arguments that are valid by the standard.
            unsafe { set(of, object, key, value.whole()) }
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $get(
            table: usize,
            key: c_int,
            value: *mut $value,
            flag: *mut c_int,
        ) -> c_int {
            // SAFETY: these are output arguments of the Fortran library, valid by the standard.
            unsafe {
                let (code, found) = get(table, key, flag);
                if flag.read() != 0 {
                    value.write(<$value>::of(found));
                }
                code
            }
        }
    )* };
}

called_by_fortran_libraries! {
    c_int: ompi_attr_create_keyval_fint ompi_attr_set_fint ompi_attr_get_fint;
    isize: ompi_attr_create_keyval_aint ompi_attr_set_aint ompi_attr_get_aint;
}

/// Predefined callbacks of Fortran: null copy, null delete, and copy of the value.
macro_rules! attribute_functions_of_fortran {
    ($($value:ty: $null_copy:ident $null_delete:ident $dup:ident;)*) => { $(
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $null_copy(
            _object: *const c_int,
            _key: *const c_int,
            _extra: *const $value,
            _value: *const $value,
            _copied: *mut $value,
            flag: *mut c_int,
            code: *mut c_int,
        ) {
            // SAFETY: these are output arguments of a copy callback, valid by the standard.
            unsafe {
                flag.write(0);
                code.write(SUCCESS);
            }
        }
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $dup(
            _object: *const c_int,
            _key: *const c_int,
            _extra: *const $value,
            value: *const $value,
            copied: *mut $value,
            flag: *mut c_int,
            code: *mut c_int,
        ) {
            // SAFETY: these are arguments of a copy callback, valid by the standard.
            unsafe {
                copied.write(value.read());
                flag.write(1);
                code.write(SUCCESS);
            }
        }
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $null_delete(
            _object: *const c_int,
            _key: *const c_int,
            _value: *const $value,
            _extra: *const $value,
            code: *mut c_int,
        ) {
            // SAFETY: this is an output argument of a delete callback, valid by the standard.
            unsafe { code.write(SUCCESS) };
        }
    )* };
}

attribute_functions_of_fortran! {
    c_int: mpi_null_copy_fn_ mpi_null_delete_fn_ mpi_dup_fn_;
    isize: mpi_comm_null_copy_fn_ mpi_comm_null_delete_fn_ mpi_comm_dup_fn_;
    isize: mpi_type_null_copy_fn_ mpi_type_null_delete_fn_ mpi_type_dup_fn_;
    isize: mpi_win_null_copy_fn_ mpi_win_null_delete_fn_ mpi_win_dup_fn_;
}
