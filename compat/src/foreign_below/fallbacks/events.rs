//! Fallbacks for tool events and event sources.
//!
//! Fallbacks report that there are no events and no sources.

use super::Foreign;
use crate::family::Word;
use std::ffi::{c_char, c_int, c_void};

/// `MPI_T_ERR_INVALID_INDEX` and `MPI_T_ERR_INVALID_NAME` of the standard.
const INVALID_INDEX: c_int = 1007;
const INVALID_NAME: c_int = 1011;

macro_rules! none {
    ($($name:ident<F: Foreign>($($argument:ty),*) = $class:ident;)*) => { $(
        pub unsafe extern "C-unwind" fn $name<F: Foreign>($(_: $argument),*) -> c_int {
            F::word_in(Word::Error, $class)
        }
    )* };
}

none! {
    MPI_T_event_get_index<F: Foreign>(*const c_char, *mut c_int) = INVALID_NAME;
    MPI_T_event_get_info<F: Foreign>(c_int, *mut c_char, *mut c_int, *mut c_int, *mut F::Below, *mut isize, *mut c_int,
        *mut usize, *mut F::Below, *mut c_char, *mut c_int, *mut c_int) = INVALID_INDEX;
    MPI_T_event_handle_alloc<F: Foreign>(c_int, *mut c_void, F::Below, *mut usize) = INVALID_INDEX;
    MPI_T_source_get_info<F: Foreign>(c_int, *mut c_char, *mut c_int, *mut c_char, *mut c_int, *mut c_int, *mut i64,
        *mut i64, *mut F::Below) = INVALID_INDEX;
    MPI_T_source_get_timestamp<F: Foreign>(c_int, *mut i64) = INVALID_INDEX;
}

macro_rules! zero {
    ($($name:ident<F: Foreign>)*) => { $(
        pub unsafe extern "C-unwind" fn $name<F: Foreign>(count: *mut c_int) -> c_int {
            if !count.is_null() {
                // SAFETY: `count` is an output argument of the program, valid and not null.
                unsafe { count.write(0) };
            }
            0
        }
    )* };
}

zero! {
    MPI_T_event_get_num<F: Foreign>
    MPI_T_source_get_num<F: Foreign>
}

pub unsafe extern "C-unwind" fn MPI_T_category_get_num_events<F: Foreign>(
    _category: c_int,
    count: *mut c_int,
) -> c_int {
    if !count.is_null() {
        // SAFETY: this is an output argument of the program, valid by the standard and not null.
        unsafe { count.write(0) };
    }
    0
}

pub unsafe extern "C-unwind" fn MPI_T_category_get_events<F: Foreign>(
    _category: c_int,
    _length: c_int,
    _indices: *mut c_int,
) -> c_int {
    0
}
