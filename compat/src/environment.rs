//! Access to environment variables, like `mpi_base::environment`.
//!
//! The compatibility libraries use no other package of Portcullis, to stay small.
#![allow(unsafe_code)]

use std::ffi::OsString;

/// Returns the value of an environment variable.
/// Returns `None` in a program with raised privileges, such as setuid (getauxval(3), `AT_SECURE`):
/// the user of such a program must not be able to choose a library for the program.
pub fn var(name: &str) -> Option<OsString> {
    // SAFETY: `getauxval` only reads the auxiliary vector of this process.
    let is_raised = unsafe { libc::getauxval(libc::AT_SECURE) != 0 };
    if is_raised {
        None
    } else {
        std::env::var_os(name)
    }
}
