//! Abort of the whole job by this rank.

use crate::phase::launcher;
use crate::state::state;
use crate::stdio;
use std::ffi::c_int;

/// Ends the whole job with an exit code. The launcher receives the reason.
pub fn abort(code: c_int, why: &str) -> ! {
    let in_use = state()
        .engines()
        .engine()
        .try_borrow()
        .map_or(true, |e| e.is_some());
    match launcher() {
        Some(launcher) if in_use => {
            // Flush first: the launcher kills all ranks when it receives the abort.
            stdio::flush();
            launcher.abort(code, why)
        }
        _ => std::process::exit(if code == 0 { 1 } else { code & 0xff }),
    }
}
