//! Lookup of the next function: the loader's next symbol of the same name.
//!
//! The symbol belongs to the MPI library, or to a profiler that calls the profiling name (`PMPI_`).
//! If the program opened the library with local scope, the lookup finds no symbol;
//! the library's function with the profiling name is used then.
//!
//! Programs that look optional functions up with `dlsym` find this library's symbols.
//! So this library defines only names of MPI 3.1 and the large-count functions;
//! a small-count function replaces a large-count function that the library lacks.
#![allow(unsafe_code)]

use coll_hwbarr_foreign::library::of_program;
use std::ffi::{CStr, CString, c_int, c_void};
use std::ptr::{null_mut, without_provenance_mut};
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::Relaxed;

/// Error code of a function that the library lacks: `MPI_ERR_OTHER` in most libraries.
pub const NOT_THERE: c_int = 16;

/// Value of `found` after a lookup without a result.
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

    /// Returns the function's address; the first call looks the address up.
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
        // SAFETY: the name is zero-terminated, and `RTLD_NEXT` is a valid handle for `dlsym`.
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

/// Prints that a count exceeds `int` and the library lacks large-count functions;
/// returns the error code.
#[cold]
pub fn too_large(name: &CStr) -> c_int {
    let name = name.to_string_lossy();
    printable::eprintln!(
        "portcullis: {name} is called with a count above 2147483647, and the MPI library of this process has no such function"
    );
    NOT_THERE
}
