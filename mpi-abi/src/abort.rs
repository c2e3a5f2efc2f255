//! The end of the whole job at the wish of this process.

use crate::phase::launcher;
use crate::state::state;
use crate::stdio;
use std::ffi::c_int;

/// Ends the whole job with an exit code; the launcher is told why.
pub fn abort(code: c_int, why: &str) -> ! {
    let in_use = state().engine.try_borrow().map_or(true, |e| e.is_some());
    match launcher() {
        Some(launcher) if in_use => {
            // First, as the launcher kills what is left of the job once it has been told.
            stdio::flush();
            launcher.abort(code, why)
        }
        _ => std::process::exit(if code == 0 { 1 } else { code & 0xff }),
    }
}
