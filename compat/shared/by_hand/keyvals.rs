//! Tests of keyvals: the backend calls the program's copy and delete callbacks.
//!
//! The callbacks receive the program's handles and keyvals, and return the program's codes.

use super::*;

unsafe extern "C-unwind" fn copy(
    object: Handle,
    keyval: c_int,
    extra_state: *mut c_void,
    value: *mut c_void,
    copied: *mut c_void,
    flag: *mut c_int,
) -> c_int {
    note_where();
    note!(
        object,
        keyval,
        extra_state.addr(),
        value.addr(),
        copied.addr(),
        flag.addr()
    );
    failure().0
}

unsafe extern "C-unwind" fn delete(
    object: Handle,
    keyval: c_int,
    value: *mut c_void,
    extra_state: *mut c_void,
) -> c_int {
    note_where();
    note!(object, keyval, value.addr(), extra_state.addr());
    other_failure().0
}

/// The mock that creates a keyval. Stores the callbacks and the extra state.
unsafe extern "C-unwind" fn take(
    copy: usize,
    delete: usize,
    keyval: *mut c_int,
    extra_state: *mut c_void,
) -> c_int {
    arrived();
    keep(0, copy);
    keep(1, delete);
    keep(2, extra_state.expose_provenance());
    *keyval = MADE_KEYVAL.1;
    answer()
}

type Copy = unsafe extern "C-unwind" fn(
    Below,
    c_int,
    *mut c_void,
    *mut c_void,
    *mut c_void,
    *mut c_int,
) -> c_int;
type Delete = unsafe extern "C-unwind" fn(Below, c_int, *mut c_void, *mut c_void) -> c_int;

fn extra_state() -> *mut c_void {
    std::ptr::with_exposed_provenance_mut(kept(2))
}

/// Calls the copy callback that the backend received.
fn call_copy(object: Below, copied: *mut c_void, flag: *mut c_int) -> c_int {
    // SAFETY: the first callback that the backend received is the copy callback, of this type.
    let function: Copy = unsafe { std::mem::transmute(kept(0)) };
    let value = scratch(1).cast();
    // SAFETY: the addresses are those of the caller's local variables, or are not accessed.
    as_library(|| unsafe { function(object, MADE_KEYVAL.1, extra_state(), value, copied, flag) })
}

/// The standard's `MPI_COMM_DUP_FN`, which is a small integer and not an address.
const DUPLICATE: usize = 1;

macro_rules! check {
    ($name:ident: $kind:ident) => {{
        let name = stringify!($name);
        let create = |copy: usize, delete: usize, code: (c_int, c_int)| {
            mock!($name = take);
            let mut keyval = -7;
            answer_with(code.1);
            let found = call!($name(copy, delete, &raw mut keyval, scratch(5).cast()));
            answer_with(0);
            assert!(called(), "{name} is not called below");
            assert_eq!(found, code.0, "{name}: the code");
            assert_eq!(keyval, MADE_KEYVAL.0, "{name}: the keyval");
        };
        create(0, 0, failure());
        assert_eq!((kept(0), kept(1)), no_functions(Kind::$kind), "{name}: no functions");
        if direction::FOREIGN {
            create(DUPLICATE, 0, (0, 0));
            let (mut copied, mut flag) = (0usize, 0);
            let code = call_copy(made(9).1, (&raw mut copied).cast(), &raw mut flag);
            assert_eq!((code, copied, flag), (0, scratch(1).addr(), 1), "{name}: a plain copy");
        }
        create(copy as *const () as usize, delete as *const () as usize, (0, 0));
        for object in [predefined(Kind::$kind), made(9)] {
            let code = call_copy(object.1, scratch(2).cast(), scratch(3).cast());
            assert_eq!(code, failure().1, "{name}: the code of the copy function");
            arrives!(name; false, object.0, MADE_KEYVAL.0, scratch(5).addr(),
                scratch(1).addr(), scratch(2).addr(), scratch(3).addr());
            // SAFETY: the backend's second callback is the delete callback, of this type.
            let function: Delete = unsafe { std::mem::transmute(kept(1)) };
            // SAFETY: `function` has this type by the transmute above.
            // It does not access the addresses.
            let code = as_library(|| unsafe {
                function(object.1, MADE_KEYVAL.1, scratch(1).cast(), extra_state())
            });
            assert_eq!(code, other_failure().1, "{name}: the code of the delete function");
            arrives!(name; false, object.0, MADE_KEYVAL.0, scratch(1).addr(), scratch(5).addr());
        }
    }};
}

pub fn check() {
    check!(MPI_Comm_create_keyval: Comm);
    check!(MPI_Keyval_create: Comm);
    check!(MPI_Win_create_keyval: Win);
    check!(MPI_Type_create_keyval: Datatype);
}
