//! The function behind one of these: the one of the same name that the loader finds next.
//!
//! That is the library's own, or a profiler's, which calls the library by its profiling name. Where the program has opened the
//! library for itself alone, the loader finds none; then it is the library's, by its profiling name.
#![allow(unsafe_code)]

use coll_hwbarr_foreign::library::of_program;
use std::ffi::{CStr, CString, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::Relaxed;

/// What a process gets that calls what its library has not: `MPI_ERR_OTHER` of most.
pub const NOT_THERE: c_int = 16;

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
        if !found.is_null() {
            return Some(found);
        }
        self.find()
    }

    #[cold]
    fn find(&self) -> Option<*mut c_void> {
        // SAFETY: looks a name up behind this library.
        let mut found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        if found.is_null() {
            let name = CString::new([b"P", self.name.to_bytes()].concat()).ok()?;
            found = of_program().ok()?.symbol(&name).ok()?;
        }
        self.found.store(found, Relaxed);
        Some(found)
    }
}

/// Tells that there is no such function.
#[cold]
pub fn absent(name: &CStr) -> c_int {
    let name = name.to_string_lossy();
    match of_program() {
        Ok(_) => eprintln!(
            "portcullis: {name} is called, which the MPI library of this process does not have"
        ),
        Err(reason) => eprintln!("portcullis: {name} is called, but {reason}"),
    }
    NOT_THERE
}
