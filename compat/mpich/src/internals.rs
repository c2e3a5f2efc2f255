//! Internal symbols of MPICH that its Fortran library needs.
//!
//! That library is `libmpifort.so.12`, or `libmpichfort.so.12` in Debian.
//!
//! MPICH's Fortran library converts arguments to C and calls the C library.
//! Its attribute functions also pass the type of the value: an integer (Fortran) or a pointer (C).
//! The value of an attribute that Fortran sets is stored unchanged,
//! so C code reads the integer itself and not a pointer to the integer.
//! For a generalized request, the Fortran library also states the language of the callbacks.
#![allow(unsafe_code, non_snake_case)]
#![allow(clippy::missing_safety_doc)]

use crate::entries::*;
use compat::handwritten::{generalized, keyvals};
use std::ffi::{c_int, c_void};

/// The value of the argument `kind` for attributes that C sets or reads: the value is a pointer.
const POINTER: c_int = 0;
/// The value of the two upper bits in predefined handles.
const PREDEFINED: c_int = 1;
/// MPICH's window keyvals whose values are not an `int`.
const WIN_BASE: c_int = 0x6600_0001;
const WIN_SIZE: c_int = 0x6600_0003;

/// Sets the functions that call a keyval's Fortran callbacks.
/// Called by the Fortran library after it has created the keyval.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn MPII_Keyval_set_proxy(keyval: c_int, copy: usize, delete: usize) {
    keyvals::call_through(keyval, copy, delete);
}

/// Records that a generalized request's callbacks are in Fortran.
/// Called by the Fortran library, on the same thread, after it has created the request.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn MPII_Grequest_set_lang_f77(_request: c_int) {
    // SAFETY: MPICH's Fortran library calls this function after a successful `MPI_Grequest_start`.
    // The program does not have the request yet.
    unsafe { generalized::last_is_in_fortran() }
}

/// Converts a keyval from Fortran to C. Fortran's predefined keyvals are C's plus one.
fn keyval_of_c(keyval: c_int) -> c_int {
    match keyval >> 30 == PREDEFINED && keyval & 1 == 0 {
        true => keyval - 1,
        false => keyval,
    }
}

/// Returns the value of an attribute for Fortran.
/// In C, the value of a predefined keyval is the integer's address, except for a window's base.
unsafe fn integer(keyval: c_int, value: *mut c_void) -> *mut c_void {
    let whole = match keyval {
        WIN_BASE => return value,
        // SAFETY: the value of this keyval is the address of an `MPI_Aint`.
        WIN_SIZE => unsafe { value.cast::<isize>().read() },
        // SAFETY: the values of all other predefined keyvals are addresses of an `int`.
        _ if keyval >> 30 == PREDEFINED => unsafe { value.cast::<c_int>().read() as isize },
        _ => return value,
    };
    std::ptr::without_provenance_mut(whole as usize)
}

/// Defines the attribute functions that MPICH's Fortran library calls.
macro_rules! attributes {
    ($($get:ident $set:ident $get_in_c:ident $set_in_c:ident;)*) => { $(
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $set(
            object: Handle,
            keyval: c_int,
            value: *mut c_void,
            _kind: c_int,
        ) -> c_int {
            // SAFETY: the value is stored and never dereferenced.
            unsafe { $set_in_c(object, keyval, value) }
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $get(
            object: Handle,
            keyval: c_int,
            value: *mut *mut c_void,
            flag: *mut c_int,
            kind: c_int,
        ) -> c_int {
            let keyval = keyval_of_c(keyval);
            // SAFETY: the Fortran library passes its own output arguments.
            // A successful call has written them.
            unsafe {
                let code = $get_in_c(object, keyval, value.cast(), flag);
                if code == 0 && flag.read() != 0 && kind != POINTER {
                    value.write(integer(keyval, value.read()));
                }
                code
            }
        }
    )* };
}

attributes! {
    MPII_Comm_get_attr MPII_Comm_set_attr PMPI_Comm_get_attr PMPI_Comm_set_attr;
    MPII_Type_get_attr MPII_Type_set_attr PMPI_Type_get_attr PMPI_Type_set_attr;
    MPII_Win_get_attr MPII_Win_set_attr PMPI_Win_get_attr PMPI_Win_set_attr;
}
