//! Objects behind handles that were made at run time, for programs in Fortran.
//!
//! Open MPI's Fortran library reads and writes fields of the objects that handles are addresses of ([`crate::internals`]).
//! Where it is loaded such a handle is the address of memory like that behind a predefined one; else it is a number, which costs nothing.
//! An object is made when its handle first comes out, and stays for the next one of that number.
#![allow(unsafe_code)]

use compat::Kind;
use std::collections::HashMap;
use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// As many words as the largest object that programs know has.
const WORDS: usize = 128;

static WANTED: AtomicBool = AtomicBool::new(false);
static OBJECTS: Mutex<Option<HashMap<usize, usize>>> = Mutex::new(None);

/// Looks whether the Fortran library is there; the loader has all of a program's libraries in memory before it starts the first.
pub fn look_for_fortran() {
    unsafe extern "C" fn look(
        info: *mut libc::dl_phdr_info,
        _: usize,
        found: *mut c_void,
    ) -> c_int {
        // SAFETY: the loader's description of a library, and a flag of the caller.
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
    // SAFETY: the function and the flag live as long as the call.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut found).cast()) };
    WANTED.store(found, Relaxed);
}

/// Whether handles of this kind are addresses; requests and messages are too short-lived, and nothing looks into them.
#[inline(always)]
pub fn are_wanted(kind: Kind) -> bool {
    WANTED.load(Relaxed) && !matches!(kind, Kind::Request | Kind::Message)
}

/// The address of the object of a handle.
#[cold]
pub fn of(handle: usize) -> usize {
    let mut objects = OBJECTS.lock().unwrap_or_else(PoisonError::into_inner);
    let objects = objects.get_or_insert_default();
    *objects.entry(handle).or_insert_with(|| {
        let object = Box::leak(Box::new([handle; WORDS]));
        std::ptr::from_mut(object).expose_provenance()
    })
}
