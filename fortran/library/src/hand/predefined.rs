//! The predefined callbacks: Fortran procedures, recognised by their addresses, and constants in C.
#![allow(unsafe_code)]

use crate::bodies::Ptr;
use crate::convert::set_logical;
use std::ffi::CStr;

const SUCCESS: i32 = 0;
/// The values of the C constants for predefined callbacks, such as `MPI_COMM_NULL_COPY_FN`.
const NULL_FN: usize = 0;
const DUP_FN: usize = 1;

/// Defines copy callbacks that set the flag to false, so no attribute is copied.
macro_rules! null_copies {
    ($($name:ident: $value:ty;)*) => {
        $(
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(
                _: *const i32, _: *const i32, _: *const $value,
                _: *const $value, _: *mut $value, flag: *mut i32, ierror: *mut i32,
            ) {
                // SAFETY: programs use this as a copy callback, with a LOGICAL and an INTEGER.
                unsafe {
                    set_logical(flag, 0);
                    *ierror = SUCCESS;
                }
            }
        )*
    };
}

/// Defines copy callbacks that copy the attribute value.
macro_rules! duplicates {
    ($($name:ident: $value:ty;)*) => {
        $(
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(
                _: *const i32, _: *const i32, _: *const $value,
                from: *const $value, to: *mut $value, flag: *mut i32, ierror: *mut i32,
            ) {
                // SAFETY: programs use this as a copy callback: values are INTEGERs of this kind,
                // `flag` is a LOGICAL and `ierror` an INTEGER.
                unsafe {
                    *to = *from;
                    set_logical(flag, 1);
                    *ierror = SUCCESS;
                }
            }
        )*
    };
}

macro_rules! null_deletes {
    ($($name:ident: $value:ty;)*) => {
        $(
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(
                _: *const i32, _: *const i32, _: *const $value, _: *const $value, ierror: *mut i32,
            ) {
                // SAFETY: programs use this as a delete callback; `ierror` is an INTEGER.
                unsafe { *ierror = SUCCESS }
            }
        )*
    };
}

null_copies! {
    mpi_comm_null_copy_fn_: i64;
    mpi_type_null_copy_fn_: i64;
    mpi_win_null_copy_fn_: i64;
    mpi_null_copy_fn_: i32;
}

duplicates! {
    mpi_comm_dup_fn_: i64;
    mpi_type_dup_fn_: i64;
    mpi_win_dup_fn_: i64;
    mpi_dup_fn_: i32;
}

null_deletes! {
    mpi_comm_null_delete_fn_: i64;
    mpi_type_null_delete_fn_: i64;
    mpi_win_null_delete_fn_: i64;
    mpi_null_delete_fn_: i32;
}

/// MPI_CONVERSION_FN_NULL, which means no conversion; the C library never calls it.
#[unsafe(no_mangle)]
pub extern "C" fn mpi_conversion_fn_null_() {}

/// MPI_CONVERSION_FN_NULL_C, the large-count form.
#[unsafe(no_mangle)]
pub extern "C" fn mpi_conversion_fn_null_c_() {}

/// A predefined callback: its address in this library, its symbol, and its constant in C.
type Known = (usize, &'static CStr, usize);

fn known() -> [Known; 14] {
    [
        (
            mpi_comm_null_copy_fn_ as *const () as usize,
            c"mpi_comm_null_copy_fn_",
            NULL_FN,
        ),
        (
            mpi_type_null_copy_fn_ as *const () as usize,
            c"mpi_type_null_copy_fn_",
            NULL_FN,
        ),
        (
            mpi_win_null_copy_fn_ as *const () as usize,
            c"mpi_win_null_copy_fn_",
            NULL_FN,
        ),
        (
            mpi_null_copy_fn_ as *const () as usize,
            c"mpi_null_copy_fn_",
            NULL_FN,
        ),
        (
            mpi_comm_dup_fn_ as *const () as usize,
            c"mpi_comm_dup_fn_",
            DUP_FN,
        ),
        (
            mpi_type_dup_fn_ as *const () as usize,
            c"mpi_type_dup_fn_",
            DUP_FN,
        ),
        (
            mpi_win_dup_fn_ as *const () as usize,
            c"mpi_win_dup_fn_",
            DUP_FN,
        ),
        (mpi_dup_fn_ as *const () as usize, c"mpi_dup_fn_", DUP_FN),
        (
            mpi_comm_null_delete_fn_ as *const () as usize,
            c"mpi_comm_null_delete_fn_",
            NULL_FN,
        ),
        (
            mpi_type_null_delete_fn_ as *const () as usize,
            c"mpi_type_null_delete_fn_",
            NULL_FN,
        ),
        (
            mpi_win_null_delete_fn_ as *const () as usize,
            c"mpi_win_null_delete_fn_",
            NULL_FN,
        ),
        (
            mpi_null_delete_fn_ as *const () as usize,
            c"mpi_null_delete_fn_",
            NULL_FN,
        ),
        (
            mpi_conversion_fn_null_ as *const () as usize,
            c"mpi_conversion_fn_null_",
            NULL_FN,
        ),
        (
            mpi_conversion_fn_null_c_ as *const () as usize,
            c"mpi_conversion_fn_null_c_",
            NULL_FN,
        ),
    ]
}

/// Returns the C constant of a predefined callback, or `None` for a user function.
///
/// A non-PIE program has its own address for the function; `dlsym` returns that address.
pub fn constant(function: Ptr) -> Option<Ptr> {
    let is = |(here, symbol, _): &Known| {
        *here == function as usize
            // SAFETY: the symbol is a string that ends with a zero byte.
            || unsafe { libc::dlsym(libc::RTLD_DEFAULT, symbol.as_ptr()) } == function.cast()
    };
    known()
        .iter()
        .find(|k| is(k))
        .map(|(_, _, value)| std::ptr::without_provenance_mut(*value))
}
