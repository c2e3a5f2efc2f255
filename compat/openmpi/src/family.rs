//! Open MPI's ABI: handles are addresses of objects, and a status has 24 bytes.
//!
//! The objects of predefined handles belong to this library, with the sizes that programs expect.
//! Each object begins with the standard's handle.
//! The loader may have copied an object into the program (a copy relocation).
//! So a predefined handle is converted by reading its object, not by its address.
//! A dynamic handle has the highest bit set, which no address has.
//! If a Fortran library is loaded, a dynamic handle is the address of an object (module `objects`).
#![allow(unsafe_code, non_upper_case_globals)]

use crate::objects;
use compat::convert::{added_in, added_out};
use compat::family::{
    BUFFER_AUTOMATIC, FIRST_DYNAMIC, FIRST_KEYVAL, INVALID, KEYVAL_INVALID, NO_HANDLE,
    PVAR_ALL_HANDLES, UNWEIGHTED, WEIGHTS_EMPTY, bits, unnamed,
};
pub use compat::layout::OpenMpiStatus;
use compat::{Family, Kind, Limit, StandardStatus, Word};
use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::sync::atomic::AtomicU8;

/// The ABI of programs compiled against Open MPI.
#[derive(Clone, Copy, Debug)]
pub struct OpenMpi;

/// The object of a predefined handle, in the size that programs expect.
/// The object's content is the standard's handle. As in Open MPI, the object is in writable memory.
#[repr(C, align(16))]
pub struct Object<const SIZE: usize>(UnsafeCell<[u8; SIZE]>);

// SAFETY: the object is never written after its initialization.
unsafe impl<const SIZE: usize> Sync for Object<SIZE> {}

impl<const SIZE: usize> Object<SIZE> {
    /// Fills every word with the standard's handle.
    /// Open MPI's Fortran library reads several of the words ([`crate::internals`]).
    const fn new(standard: usize) -> Self {
        Object::filled(standard, standard.to_ne_bytes())
    }

    /// Makes an object from which Open MPI's Fortran library reads the Fortran handle.
    /// The handle is an `int` at an offset that depends on the type.
    /// So every `int` after the first word is that handle.
    const fn with_number(standard: usize, number: u32) -> Self {
        let number = (number as usize) << u32::BITS | number as usize;
        Object::filled(standard, number.to_ne_bytes())
    }

    const fn filled(standard: usize, word: [u8; size_of::<usize>()]) -> Self {
        let mut bytes = [0; SIZE];
        let first = standard.to_ne_bytes();
        let mut i = 0;
        while i < SIZE {
            bytes[i] = match i < first.len() {
                true => first[i],
                false => word[i % word.len()],
            };
            i += 1;
        }
        Object(UnsafeCell::new(bytes))
    }
}

mod words {
    use super::*;
    include!(concat!(env!("OUT_DIR"), "/words.rs"));
}

/// The address of an object of a predefined handle, which the loader relocates.
#[repr(transparent)]
pub struct Address(*const c_void);

// SAFETY: the address is compared and passed, but never dereferenced.
unsafe impl Sync for Address {}

include!(concat!(env!("OUT_DIR"), "/handles.rs"));

/// Open MPI's largest predefined error code. Codes that programs add are larger.
const LAST_CODE: c_int = 92;
/// The highest bit of a handle, which is set in all dynamic handles.
const DYNAMIC: usize = 1 << (usize::BITS - 1);
/// The lowest possible address of an object: the first page (4096 bytes) contains none.
const FIRST_ADDRESS: usize = 4096;
/// The values of `MPI_ERR_OTHER`, `MPI_ERR_ARG` and `MPI_ERR_ERRHANDLER` in the standard.
const OTHER: c_int = 16;
const ARGUMENT: c_int = 13;
const ERRHANDLER: c_int = 61;
/// Open MPI's values of `MPI_UNWEIGHTED`, `MPI_WEIGHTS_EMPTY` and `MPI_T_PVAR_ALL_HANDLES`.
const UNWEIGHTED_THERE: usize = 2;
const WEIGHTS_EMPTY_THERE: usize = 3;
const ALL_HANDLES_THERE: usize = usize::MAX;

fn added_error_in(code: c_int) -> c_int {
    added_in(code, LAST_CODE)
}

fn added_error_out(code: c_int) -> c_int {
    match added_out(code, LAST_CODE) {
        // Open MPI lacks `MPI_ERR_ERRHANDLER` and some other error classes of the standard.
        same if same == ERRHANDLER => words::word_out(Word::Error, ARGUMENT),
        same if same == code => words::word_out(Word::Error, OTHER),
        added => added,
    }
}

#[inline(always)]
fn handle_in(handle: usize) -> usize {
    if handle & DYNAMIC != 0 {
        handle & !DYNAMIC
    } else if handle < FIRST_ADDRESS {
        NO_HANDLE
    } else {
        // SAFETY: a handle without the dynamic bit is the address of a predefined object.
        // Predefined objects are valid until process exit.
        unsafe { std::ptr::with_exposed_provenance::<usize>(handle).read_unaligned() }
    }
}

#[inline(always)]
fn handle_out(kind: Kind, handle: usize) -> usize {
    if handle >= FIRST_DYNAMIC {
        return match objects::are_wanted(kind) {
            false => handle | DYNAMIC,
            true => objects::of(kind, handle),
        };
    }
    let address = |handle: usize| ADDRESSES.get(handle).map_or(0, |a| a.0.expose_provenance());
    match address(handle) {
        0 => address(kind.null()),
        known => known,
    }
}

impl Family for OpenMpi {
    type Handle = usize;
    type Status = OpenMpiStatus;
    type Below = usize;
    type BelowStatus = StandardStatus;

    const STATUS_IGNORE: usize = 0;
    const BELOW_STATUS_IGNORE: usize = 0;
    const DISPLACEMENT_CURRENT: i64 = -54_278_278;
    const BELOW_DISPLACEMENT_CURRENT: i64 = -1;

    fn is_none(handle: usize) -> bool {
        handle == NO_HANDLE
    }

    #[inline(always)]
    fn null(kind: Kind) -> usize {
        kind.null()
    }

    #[inline(always)]
    fn no_file() -> usize {
        Kind::File.null()
    }

    #[inline(always)]
    fn standard(_word: Word, below: c_int) -> c_int {
        below
    }

    #[inline(always)]
    fn handle_in(_kind: Kind, handle: usize) -> usize {
        handle_in(handle)
    }

    #[inline(always)]
    fn handle_out(kind: Kind, handle: usize) -> usize {
        handle_out(kind, handle)
    }

    #[inline(always)]
    fn file_in(file: usize) -> usize {
        handle_in(file)
    }

    #[inline(always)]
    fn file_out(file: usize) -> usize {
        handle_out(Kind::File, file)
    }

    #[inline(always)]
    fn word_in(word: Word, value: c_int) -> c_int {
        words::word_in(word, value)
    }

    #[inline(always)]
    fn word_out(word: Word, value: c_int) -> c_int {
        words::word_out(word, value)
    }

    /// Returns `buffer` unchanged, because Open MPI's buffer constants equal the standard's.
    /// Open MPI lacks `MPI_BUFFER_AUTOMATIC`.
    #[inline(always)]
    fn buffer_in(buffer: *mut c_void) -> *mut c_void {
        buffer
    }

    fn buffer_out(buffer: *mut c_void) -> *mut c_void {
        match buffer.addr() {
            BUFFER_AUTOMATIC => std::ptr::null_mut(),
            _ => buffer,
        }
    }

    fn weights_in(weights: *mut c_int) -> *mut c_int {
        match weights.addr() {
            UNWEIGHTED_THERE => std::ptr::without_provenance_mut(UNWEIGHTED),
            WEIGHTS_EMPTY_THERE => std::ptr::without_provenance_mut(WEIGHTS_EMPTY),
            _ => weights,
        }
    }

    fn pvar_in(handle: usize) -> usize {
        match handle {
            ALL_HANDLES_THERE => PVAR_ALL_HANDLES,
            other => other,
        }
    }

    fn limit(limit: Limit) -> usize {
        match limit {
            Limit::ObjectName => 64,
            Limit::ErrorString => 256,
            Limit::ProcessorName => 256,
            Limit::LibraryVersion => 256,
            Limit::InfoKey => 36,
            Limit::PortName => 1024,
        }
    }

    #[inline(always)]
    fn status_in(status: &OpenMpiStatus) -> StandardStatus {
        status.to_standard()
    }

    #[inline(always)]
    fn status_out(status: &StandardStatus) -> OpenMpiStatus {
        OpenMpiStatus::of_standard(status)
    }

    #[inline(always)]
    fn status_below(status: &StandardStatus) -> StandardStatus {
        *status
    }

    #[inline(always)]
    fn status_above(status: &StandardStatus) -> StandardStatus {
        *status
    }

    /// Returns the flag in the request's object to which Open MPI's Fortran library writes.
    fn language_of_callbacks(request: usize) -> Option<&'static AtomicU8> {
        objects::language_of_callbacks(handle_in(request))
    }

    /// Returns null pointers: the standard's callbacks that do not copy or delete an attribute.
    fn no_functions(_kind: Kind) -> (usize, usize) {
        (0, 0)
    }

    fn status_error(status: &OpenMpiStatus) -> c_int {
        status.error
    }
}

/// Converts a handle of the standard to Open MPI's handle.
pub fn handle_of_standard(kind: Kind, standard: usize) -> usize {
    handle_out(kind, standard)
}

/// Returns a handle's Fortran integer. For predefined handles it is Open MPI's constant.
pub fn to_fortran(kind: Kind, handle: usize) -> c_int {
    let standard = handle_in(handle);
    let known = FORTRAN
        .iter()
        .find(|(of, _, value)| *of == kind as usize && *value == standard);
    match known {
        Some((_, number, _)) => *number,
        None => c_int::try_from(standard).unwrap_or(-1),
    }
}

/// Returns the handle of a Fortran integer, or the null handle if no handle has this integer.
pub fn from_fortran(kind: Kind, number: c_int) -> usize {
    let known = FORTRAN
        .iter()
        .find(|(of, value, _)| *of == kind as usize && *value == number);
    let standard = match known {
        Some((_, _, standard)) => *standard,
        None => usize::try_from(number).unwrap_or(0),
    };
    if known.is_none() && standard < FIRST_DYNAMIC {
        return handle_out(kind, kind.null());
    }
    handle_out(kind, standard)
}

/// Returns true for `MPI_LB`, the marker of a structure's lower bound, which MPI-3 has removed.
pub fn is_lower_bound(datatype: usize) -> bool {
    handle_in(datatype) == LOWER_BOUND
}

pub fn is_upper_bound(datatype: usize) -> bool {
    handle_in(datatype) == UPPER_BOUND
}
