//! The function behind one of these: the one of the same name that the loader finds next.
//!
//! That is the library's own, or a profiler's, which calls the library by its profiling name. Where the program has opened the
//! library for itself alone, the loader finds none; then it is the library's, by its profiling name.
//!
//! A name that stands here is found by programs that ask the loader what the library has. So there are only names that libraries
//! have since MPI 3.1, and beside them those for large counts, which where the library lacks them are the others with small ones.
#![allow(unsafe_code)]

use coll_hwbarr_foreign::library::of_program;
use std::ffi::{CStr, CString, c_int, c_void};
use std::ptr::{null_mut, without_provenance_mut};
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::Relaxed;

/// What a process gets that calls what its library has not: `MPI_ERR_OTHER` of most.
pub const NOT_THERE: c_int = 16;

/// In an address's place: it was looked for, and the library has none.
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

    /// Its address; found by the first call.
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
        // SAFETY: looks a name up behind this library.
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

/// Tells that there is no such function.
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

/// Tells that a count is too large for a library that has none of the functions for large ones.
#[cold]
pub fn too_large(name: &CStr) -> c_int {
    let name = name.to_string_lossy();
    printable::eprintln!(
        "portcullis: {name} is called with a count above 2147483647, and the MPI library of this process has no such function"
    );
    NOT_THERE
}
