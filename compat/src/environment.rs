//! Access to environment variables, a counterpart of `mpi_base::environment`.
//!
//! These libraries use no other package of Portcullis, to stay small.
#![allow(unsafe_code)]

use std::ffi::OsString;

/// Returns the value of a variable.
/// Returns `None` in a program with raised privileges (getauxval(3), `AT_SECURE`).
/// The user must not choose a library for such a program.
pub fn var(name: &str) -> Option<OsString> {
    // SAFETY: `getauxval` only reads the auxiliary vector of this process.
    let is_raised = unsafe { libc::getauxval(libc::AT_SECURE) != 0 };
    if is_raised {
        None
    } else {
        std::env::var_os(name)
    }
}
