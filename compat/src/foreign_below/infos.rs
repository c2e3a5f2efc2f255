//! Access to values in the program's info objects.

use super::Foreign;
use crate::backend;
use crate::family::Kind;
use std::ffi::{CStr, CString};

/// Maximum length in bytes of the info values that this library reads.
const LONGEST: usize = 255;

/// Returns the value of a key, or `None` if the info object does not have the key.
///
/// # Safety
/// `info` is valid in the backend, or is the null handle.
pub unsafe fn entry<F: Foreign>(info: F::Below, key: &CStr) -> Option<CString> {
    if info == F::null(Kind::Info) {
        return None;
    }
    let (mut text, mut flag) = ([0u8; LONGEST + 1], 0);
    let place = text.as_mut_ptr().cast();
    // SAFETY: `info` is valid by contract.
    // The buffer has `LONGEST` bytes and one byte for the NUL.
    let code = unsafe {
        (backend::MPI_Info_get::<F>())(info, key.as_ptr(), LONGEST as _, place, &raw mut flag)
    };
    if code != 0 || flag == 0 {
        return None;
    }
    CStr::from_bytes_until_nul(&text).ok().map(CStr::to_owned)
}
