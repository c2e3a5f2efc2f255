//! Objects of dynamic handles, for Fortran programs.
//!
//! Open MPI's Fortran library accesses fields of the objects of handles ([`crate::internals`]).
//! If that library is loaded, a dynamic handle is the address of an object, as predefined ones are.
//! Otherwise a dynamic handle is an integer, without overhead.
//! An object is allocated when its handle is first returned to the program.
//! The next handle with the same value uses the same object.
#![allow(unsafe_code)]

use compat::Kind;
use std::collections::HashMap;
use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering::*};
use std::sync::{Mutex, PoisonError};

/// Size of an object in words, that of the largest object that programs expect of Open MPI.
const WORDS: usize = 128;
/// Size of a request object in words. It is small, because programs create many requests.
const WORDS_OF_REQUEST: usize = FUNCTIONS_ARE_C / size_of::<usize>() + 1;
/// Offset of `greq_funcs_are_c` in the generalized request object of Open MPI 4.1.
const FUNCTIONS_ARE_C: usize = 0xc0;

static WANTED: AtomicBool = AtomicBool::new(false);
static OBJECTS: Mutex<Option<HashMap<usize, usize>>> = Mutex::new(None);

const RECENT_BITS: u32 = 12;
/// Addresses of recently used objects, indexed by a hash of their handles.
static RECENT: [AtomicUsize; 1 << RECENT_BITS] = [const { AtomicUsize::new(0) }; 1 << RECENT_BITS];

/// Checks whether the Fortran library is loaded.
/// The loader maps all libraries of a program before it starts the first one.
pub fn look_for_fortran() {
    unsafe extern "C" fn look(
        info: *mut libc::dl_phdr_info,
        _: usize,
        found: *mut c_void,
    ) -> c_int {
        // SAFETY: the loader passes a description of a loaded library.
        // `look_for_fortran` passes the pointer to its flag.
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
    // SAFETY: `look` and `found` outlive the call, which passes `&mut found` to `look`.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut found).cast()) };
    WANTED.store(found, Relaxed);
}

/// Returns true if handles of this type must be addresses of objects.
/// The Fortran library accesses no fields of message objects.
#[inline(always)]
pub fn are_wanted(kind: Kind) -> bool {
    WANTED.load(Relaxed) && kind != Kind::Message
}

/// Returns the address of a handle's object.
#[cold]
pub fn of(kind: Kind, handle: usize) -> usize {
    let recent = &RECENT[handle.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (usize::BITS - RECENT_BITS)];
    let object = recent.load(Acquire);
    // SAFETY: an entry of `RECENT` is 0 or the address of an object.
    // An object is never freed, and its first word does not change.
    if object != 0 && unsafe { *std::ptr::with_exposed_provenance::<usize>(object) } == handle {
        return object;
    }
    let object = found(kind, handle);
    recent.store(object, Release);
    object
}

/// Returns the address of a handle's object, which is allocated if it does not exist.
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

/// Returns `greq_funcs_are_c` in the object of a new generalized request, initially 1.
/// Open MPI's Fortran library clears the flag if the callbacks are in Fortran.
pub fn language_of_callbacks(handle: usize) -> Option<&'static AtomicU8> {
    if !WANTED.load(Relaxed) {
        return None;
    }
    let flag = of(Kind::Request, handle) + FUNCTIONS_ARE_C;
    // SAFETY: the object has at least `WORDS_OF_REQUEST` words and is never freed.
    // The word of the flag is never read as a handle.
    let flag = unsafe { AtomicU8::from_ptr(std::ptr::with_exposed_provenance_mut(flag)) };
    flag.store(1, Relaxed);
    Some(flag)
}
