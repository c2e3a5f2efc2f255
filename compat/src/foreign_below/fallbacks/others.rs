//! Fallbacks for the removal of error classes, codes and texts that the program has added.
//!
//! They are registered in [`crate::foreign_below::interposed::codes`].

use super::Foreign;
use crate::foreign_below::interposed::codes::{remove, remove_text};
use std::ffi::c_int;

pub unsafe extern "C-unwind" fn MPI_Remove_error_class<F: Foreign>(class: c_int) -> c_int {
    remove::<F>(class, true)
}

pub unsafe extern "C-unwind" fn MPI_Remove_error_code<F: Foreign>(code: c_int) -> c_int {
    remove::<F>(code, false)
}

pub unsafe extern "C-unwind" fn MPI_Remove_error_string<F: Foreign>(code: c_int) -> c_int {
    // SAFETY: `remove_text` calls the backend only with a code that the program has added.
    unsafe { remove_text::<F>(code) }
}
