//! Objects behind dynamic handles, for Fortran programs.
//!
//! Open MPI's Fortran library accesses fields of the objects that handles point to ([`crate::internals`]).
//! If it is loaded, such a handle is the address of an object like those behind predefined handles; otherwise it is a number, which has no cost.
//! An object is allocated when its handle is first returned, and is reused for the next handle of that number.
#![allow(unsafe_code)]

use compat::Kind;
use std::collections::HashMap;
use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering::*};
use std::sync::{Mutex, PoisonError};

/// Number of words of the largest object that programs know.
const WORDS: usize = 128;
/// The same of a request. Programs have many requests one after the other, each with a number of its own.
const WORDS_OF_REQUEST: usize = FUNCTIONS_ARE_C / size_of::<usize>() + 1;
/// The offset of the flag `greq_funcs_are_c` in the object of a generalized request of Open MPI 4.1.
const FUNCTIONS_ARE_C: usize = 0xc0;

static WANTED: AtomicBool = AtomicBool::new(false);
static OBJECTS: Mutex<Option<HashMap<usize, usize>>> = Mutex::new(None);

const RECENT_BITS: u32 = 12;
/// Addresses of objects, by a hash of their handles; a handle of the same hash replaces another one.
static RECENT: [AtomicUsize; 1 << RECENT_BITS] = [const { AtomicUsize::new(0) }; 1 << RECENT_BITS];

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

/// Returns true if handles of this kind are addresses. Messages are not: their fields are not accessed.
#[inline(always)]
pub fn are_wanted(kind: Kind) -> bool {
    WANTED.load(Relaxed) && kind != Kind::Message
}

/// Returns the address of the object of a handle.
#[cold]
pub fn of(kind: Kind, handle: usize) -> usize {
    let recent = &RECENT[handle.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (usize::BITS - RECENT_BITS)];
    let object = recent.load(Acquire);
    // SAFETY: what `RECENT` has is 0 or the address of an object, which is never freed and whose first word does not change.
    if object != 0 && unsafe { *std::ptr::with_exposed_provenance::<usize>(object) } == handle {
        return object;
    }
    let object = found(kind, handle);
    recent.store(object, Release);
    object
}

/// The same by the table of all objects.
fn found(kind: Kind, handle: usize) -> usize {
    let mut objects = OBJECTS.lock().unwrap_or_else(PoisonError::into_inner);
    let objects = objects.get_or_insert_default();
    *objects.entry(handle).or_insert_with(|| {
        let words = match kind {
            Kind::Request => WORDS_OF_REQUEST,
            _ => WORDS,
        };
        let object = Box::leak(vec![handle; words].into_boxed_slice());
        object.as_mut_ptr().expose_provenance()
    })
}

/// Returns the flag in the object of a new generalized request that Open MPI's Fortran library clears if the callbacks are in Fortran.
pub fn language_of_callbacks(handle: usize) -> Option<&'static AtomicU8> {
    if !WANTED.load(Relaxed) {
        return None;
    }
    let flag = of(Kind::Request, handle) + FUNCTIONS_ARE_C;
    // SAFETY: the object has `WORDS_OF_REQUEST` words at least and is never freed; nothing reads this word as a handle.
    let flag = unsafe { AtomicU8::from_ptr(std::ptr::with_exposed_provenance_mut(flag)) };
    flag.store(1, Relaxed);
    Some(flag)
}
