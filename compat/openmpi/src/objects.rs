//! Objects behind dynamic handles, for Fortran programs.
//!
//! Open MPI's Fortran library accesses fields of the objects that handles point to ([`crate::internals`]).
//! If it is loaded, such a handle is the address of an object like those behind predefined handles; otherwise it is a number, which has no cost.
//! An object is allocated when its handle is first returned, and is reused for the next handle of that number.
#![allow(unsafe_code)]

use compat::Kind;
use std::collections::HashMap;
use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// Number of words of the largest object that programs know.
const WORDS: usize = 128;

static WANTED: AtomicBool = AtomicBool::new(false);
static OBJECTS: Mutex<Option<HashMap<usize, usize>>> = Mutex::new(None);

/// Checks whether the Fortran library is loaded; the loader maps all of a program's libraries before it starts the first.
pub fn look_for_fortran() {
    unsafe extern "C" fn look(
        info: *mut libc::dl_phdr_info,
        _: usize,
        found: *mut c_void,
    ) -> c_int {
        // SAFETY: the loader passes a description of a loaded library, and `look_for_fortran` the pointer to its flag.
        unsafe {
            let name: *const c_char = (*info).dlpi_name;
            if !name.is_null()
                && std::ffi::CStr::from_ptr(name)
                    .to_bytes()
                    .windows(9)
                    .any(|part| part == b"mpi_mpifh")
            {
                found.cast::<bool>().write(true);
            }
        }
        0
    }
    let mut found = false;
    // SAFETY: `look` and `found` live as long as the call, which passes `look` the right pointer.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut found).cast()) };
    WANTED.store(found, Relaxed);
}

/// Returns true if handles of this kind are addresses. Requests and messages are not: they are short-lived, and their fields are not accessed.
#[inline(always)]
pub fn are_wanted(kind: Kind) -> bool {
    WANTED.load(Relaxed) && !matches!(kind, Kind::Request | Kind::Message)
}

/// Returns the address of the object of a handle.
#[cold]
pub fn of(handle: usize) -> usize {
    let mut objects = OBJECTS.lock().unwrap_or_else(PoisonError::into_inner);
    let objects = objects.get_or_insert_default();
    *objects.entry(handle).or_insert_with(|| {
        let object = Box::leak(Box::new([handle; WORDS]));
        std::ptr::from_mut(object).expose_provenance()
    })
}
