//! The directory in which the library with this code is installed; an installation can be moved.
#![allow(unsafe_code)]

use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

/// The `LD_PRELOAD` library for programs built for other MPI libraries, installed with the plugins in `PREFIX/lib/portcullis`.
pub const PRELOAD: &str = "libportcullis-preload.so";

/// The library for debuggers, in the same folder as [`PRELOAD`].
pub const QUEUES: &str = "libportcullis-queues.so";

/// Returns `PREFIX` of `PREFIX/lib/libmpi_abi.so`:
/// the parent of the directory of the file with this code.
/// Returns `None` if the dynamic loader does not know the file.
pub fn prefix() -> Option<PathBuf> {
    let mut found = libc::Dl_info {
        dli_fname: std::ptr::null(),
        dli_fbase: std::ptr::null_mut(),
        dli_sname: std::ptr::null(),
        dli_saddr: std::ptr::null_mut(),
    };
    let inside = prefix as fn() -> Option<PathBuf>;
    // SAFETY: the address is that of a function of this library, and the result is written to a local.
    let known = unsafe { libc::dladdr(inside as *const _, &mut found) } != 0;
    if !known || found.dli_fname.is_null() {
        return None;
    }
    // SAFETY: `dladdr` succeeded, so the pointer is the loader's string,
    // which exists while the library is loaded.
    let name = unsafe { CStr::from_ptr(found.dli_fname) };
    let path = PathBuf::from(OsStr::from_bytes(name.to_bytes()));
    Some(path.canonicalize().ok()?.parent()?.parent()?.to_path_buf())
}

/// Returns the installation's folder of plugin files; `None` if the installation is unknown.
pub fn plugins() -> Option<PathBuf> {
    prefix().map(|prefix| prefix.join("lib/portcullis"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_prefix_of_a_program_is_above_its_folder() {
        let program = std::env::current_exe().unwrap().canonicalize().unwrap();
        assert_eq!(
            super::prefix().as_deref(),
            program.parent().unwrap().parent()
        );
    }
}
