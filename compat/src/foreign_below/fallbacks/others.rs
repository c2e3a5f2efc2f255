//! Error codes that are taken back.

use super::Foreign;
use crate::below;
use crate::family::{LAST_CODE, Word};
use std::ffi::c_int;

/// `MPI_ERR_ARG` of the standard.
const ARGUMENT: c_int = 13;

/// A code that the program added; the library goes on to know it, which shows only in the codes that come next.
fn added<F: Foreign>(code: c_int) -> c_int {
    match F::word_out(Word::Error, code) > LAST_CODE {
        true => 0,
        false => F::word_in(Word::Error, ARGUMENT),
    }
}

pub unsafe extern "C" fn MPI_Remove_error_class<F: Foreign>(class: c_int) -> c_int {
    added::<F>(class)
}

pub unsafe extern "C" fn MPI_Remove_error_code<F: Foreign>(code: c_int) -> c_int {
    added::<F>(code)
}

pub unsafe extern "C" fn MPI_Remove_error_string<F: Foreign>(code: c_int) -> c_int {
    match added::<F>(code) {
        // SAFETY: a code that the program added, and an empty text.
        0 => unsafe { (below::MPI_Add_error_string::<F>())(code, c"".as_ptr()) },
        wrong => wrong,
    }
}
