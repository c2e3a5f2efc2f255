//! Access to environment variables, the counterpart of `mpi_base::environment`.
//!
//! These libraries link none of Portcullis's packages, to stay small, so they have their own function.
#![allow(unsafe_code)]

use std::ffi::OsString;

/// Returns the value of a variable; `None` in a program with raised privileges (getauxval(3), `AT_SECURE`),
/// whose user must not choose a library for it.
pub fn var(name: &str) -> Option<OsString> {
    // SAFETY: `getauxval` only reads the auxiliary vector that the kernel has passed to this process.
    let is_raised = unsafe { libc::getauxval(libc::AT_SECURE) != 0 };
    if is_raised {
        None
    } else {
        std::env::var_os(name)
    }
}
