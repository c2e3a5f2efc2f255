//! Lookup of the next function: the one of the same name that the loader finds after the one here.
//!
//! That is the MPI library's own, or a profiler's, which calls the library by its profiling name. If the program has opened the
//! library with local scope, the loader finds none; then the library's function with the profiling name is used.
//!
//! Programs that ask the loader for optional functions find the names here. So this library has only names that MPI libraries
//! have since MPI 3.1, and the large-count functions; if the library lacks one of those, the small-count function serves.
#![allow(unsafe_code)]

use coll_hwbarr_foreign::library::of_program;
use std::ffi::{CStr, CString, c_int, c_void};
use std::ptr::{null_mut, without_provenance_mut};
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::Relaxed;

/// The error code of a call to a function that the library lacks: `MPI_ERR_OTHER` in most libraries.
pub const NOT_THERE: c_int = 16;

/// Instead of an address: the lookup found none.
const ABSENT: usize = 1;

pub struct Next {
    name: &'static CStr,
    found: AtomicPtr<c_void>,
}

impl Next {
    pub const fn new(name: &'static CStr) -> Next {
        Next {
            name,
            found: AtomicPtr::new(null_mut()),
        }
    }

    pub fn name(&self) -> &'static CStr {
        self.name
    }

    /// Returns the function's address; the first call searches for it.
    #[inline(always)]
    pub fn get(&self) -> Option<*mut c_void> {
        let found = self.found.load(Relaxed);
        match found.addr() {
            0 => self.find(),
            ABSENT => None,
            _ => Some(found),
        }
    }

    #[cold]
    fn find(&self) -> Option<*mut c_void> {
        // SAFETY: looks up a zero-terminated name in the files after this one.
        let mut found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        if found.is_null() {
            let name = CString::new([b"P", self.name.to_bytes()].concat()).ok()?;
            let of_library = of_program().ok()?.symbol(&name);
            found = of_library.unwrap_or(without_provenance_mut(ABSENT));
        }
        self.found.store(found, Relaxed);
        (found.addr() != ABSENT).then_some(found)
    }
}

/// Prints that the library lacks this function, and returns the error code.
#[cold]
pub fn absent(name: &CStr) -> c_int {
    let name = name.to_string_lossy();
    match of_program() {
        Ok(_) => printable::eprintln!(
            "portcullis: {name} is called, which the MPI library of this process does not have"
        ),
        Err(reason) => printable::eprintln!("portcullis: {name} is called, but {reason}"),
    }
    NOT_THERE
}

/// Prints that a count is too large for a library without large-count functions, and returns the error code.
#[cold]
pub fn too_large(name: &CStr) -> c_int {
    let name = name.to_string_lossy();
    printable::eprintln!(
        "portcullis: {name} is called with a count above 2147483647, and the MPI library of this process has no such function"
    );
    NOT_THERE
}
