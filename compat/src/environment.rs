//! The door to the environment of this process, as `mpi_base::environment` is for the library itself.
//!
//! These libraries link none of the library's packages, since each must stay small, so they have a door of their own.
#![allow(unsafe_code)]

use std::ffi::OsString;

/// The value of a variable; `None` in a program with more rights than its user (getauxval(3), `AT_SECURE`),
/// whose user must choose no library for it.
pub fn var(name: &str) -> Option<OsString> {
    // SAFETY: the call reads what the kernel told this process at its start, and has no other effect.
    let is_raised = unsafe { libc::getauxval(libc::AT_SECURE) != 0 };
    if is_raised {
        None
    } else {
        std::env::var_os(name)
    }
}
