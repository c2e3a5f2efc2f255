//! What an info of the program says.

use super::Foreign;
use crate::below;
use crate::family::Kind;
use std::ffi::{CStr, CString};

/// The longest value that this library asks for.
const LONGEST: usize = 255;

/// The entry of an info, if it has it.
///
/// # Safety
/// The info is one of the program, or null.
pub unsafe fn entry<F: Foreign>(info: F::Below, key: &CStr) -> Option<CString> {
    if info == F::null(Kind::Info) {
        return None;
    }
    let (mut text, mut flag) = ([0u8; LONGEST + 1], 0);
    let place = text.as_mut_ptr().cast();
    // SAFETY: as the caller says; the buffer has room for the text and its end.
    let code = unsafe {
        (below::MPI_Info_get::<F>())(info, key.as_ptr(), LONGEST as _, place, &raw mut flag)
    };
    if code != 0 || flag == 0 {
        return None;
    }
    CStr::from_bytes_until_nul(&text).ok().map(CStr::to_owned)
}
