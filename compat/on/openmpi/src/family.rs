//! Open MPI's ABI as the backend of programs of the standard ABI.
//!
//! Handles are addresses of objects.
//!
//! Predefined objects are symbols of the library, which are looked up once, at the start.
//! Predefined objects are close together in the library's data segment.
//! So a handle outside their address range is dynamic.
#![allow(unsafe_code)]

use compat::convert::{added_in, added_out, own_class_in, own_class_out};
use compat::family::{
    FIRST_DYNAMIC, INVALID, KEYVAL_INVALID, PVAR_ALL_HANDLES, UNWEIGHTED, WEIGHTS_EMPTY, bits,
    unnamed,
};
use compat::foreign_below::Foreign;
use compat::layout::OpenMpiStatus;
use compat::reentrancy;
use compat::static_ref;
use compat::{Family, Kind, Limit, StandardStatus, Word};
use std::ffi::{CStr, c_int, c_void};
use std::ptr::without_provenance_mut;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Conversion rules for programs of the standard ABI on Open MPI (see [`Family`]).
#[derive(Clone, Copy, Debug)]
pub struct OnOpenMpi;

mod words {
    use super::*;
    include!(concat!(env!("OUT_DIR"), "/words.rs"));
}

include!(concat!(env!("OUT_DIR"), "/handles.rs"));

/// Returns the symbols of the library's predefined objects.
#[cfg(test)]
pub fn symbols() -> impl Iterator<Item = &'static str> {
    SYMBOLS
        .iter()
        .filter_map(|(.., symbol)| symbol.to_str().ok())
}

/// Open MPI's largest predefined error code. Codes that programs add are larger.
const LAST_BELOW: c_int = 92;
/// The value of `MPI_ERR_OTHER` in the standard.
const OTHER: c_int = 16;

fn added_error_in(code: c_int) -> c_int {
    match added_out(code, LAST_BELOW) {
        // Open MPI does not have this error class of the standard.
        same if same == code && code >= 0 => own_class_in(code),
        added => added,
    }
}

fn added_error_out(code: c_int) -> c_int {
    match code {
        1..=LAST_BELOW => OTHER,
        _ if own_class_out(code).is_some() => own_class_out(code).unwrap_or(OTHER),
        _ => added_in(code, LAST_BELOW),
    }
}

/// The offset of Open MPI's keyvals in the program.
/// Open MPI's keyvals are small integers, which may equal predefined keyvals of the standard.
const KEYVALS: c_int = 0x10000;

fn added_keyval_in(keyval: c_int) -> c_int {
    if keyval < KEYVALS {
        -1
    } else {
        keyval - KEYVALS
    }
}

fn added_keyval_out(keyval: c_int) -> c_int {
    if keyval < 0 {
        KEYVAL_INVALID
    } else {
        keyval.saturating_add(KEYVALS)
    }
}

/// Open MPI's values of `MPI_UNWEIGHTED`, `MPI_WEIGHTS_EMPTY` and `MPI_T_PVAR_ALL_HANDLES`.
const UNWEIGHTED_BELOW: usize = 2;
const WEIGHTS_EMPTY_BELOW: usize = 3;
const ALL_HANDLES_BELOW: usize = usize::MAX;

/// The addresses of Open MPI's predefined objects, indexed by the standard's handle.
/// The address is 0 for other handles.
static OBJECTS: [AtomicUsize; FIRST_DYNAMIC] = [const { AtomicUsize::new(0) }; FIRST_DYNAMIC];
/// The lowest address of a predefined object, and the distance from it to the highest address.
static LOWEST: AtomicUsize = AtomicUsize::new(usize::MAX);
static SPAN: AtomicUsize = AtomicUsize::new(0);
/// Hash table with linear probing: object addresses, each with the standard's handle.
static HANDLES: [[AtomicUsize; 2]; PLACES] =
    [const { [AtomicUsize::new(0), AtomicUsize::new(0)] }; PLACES];
const PLACES: usize = 1024;

/// Returns the index in the hash table at which the search for an address begins.
#[inline(always)]
fn place_of(address: usize) -> usize {
    ((address >> 4).wrapping_mul(0x9e37_79b9) >> 7) % PLACES
}

#[inline(always)]
fn object(handle: usize) -> usize {
    static_ref!(OBJECTS)[handle].load(Ordering::Relaxed)
}

#[inline(always)]
fn handle_of(address: usize) -> usize {
    let from_lowest = address.wrapping_sub(static_ref!(LOWEST).load(Ordering::Relaxed));
    if from_lowest > static_ref!(SPAN).load(Ordering::Relaxed) {
        return address;
    }
    let mut place = place_of(address);
    loop {
        let [known, handle] = &HANDLES[place];
        match known.load(Ordering::Relaxed) {
            0 => return address,
            known if known == address => return handle.load(Ordering::Relaxed),
            _ => place = (place + 1) % PLACES,
        }
    }
}

fn add(address: usize, handle: usize) {
    let mut place = place_of(address);
    loop {
        let [known, of] = &HANDLES[place];
        match known.load(Ordering::Relaxed) {
            0 => {
                of.store(handle, Ordering::Relaxed);
                known.store(address, Ordering::Relaxed);
                let low = LOWEST.load(Ordering::Relaxed);
                let high = low.wrapping_add(SPAN.load(Ordering::Relaxed));
                let (low, high) = match low {
                    usize::MAX => (address, address),
                    low => (low.min(address), high.max(address)),
                };
                LOWEST.store(low, Ordering::Relaxed);
                SPAN.store(high - low, Ordering::Relaxed);
                return;
            }
            // The object has two symbols. Programs get the handle of the first one.
            known if known == address => return,
            _ => place = (place + 1) % PLACES,
        }
    }
}

/// The addresses of Open MPI's functions `MPI_X_c2f` and `MPI_X_f2c`, indexed by handle type.
static NUMBERS: [[AtomicUsize; 2]; 11] = [const { [AtomicUsize::new(0), AtomicUsize::new(0)] }; 11];

/// The lowest integer of a dynamic handle. Smaller integers denote predefined handles.
const FIRST_NUMBER: c_int = FIRST_DYNAMIC as c_int;

/// The bits that are set in all emulated handles.
/// No object has such an address, since addresses of objects are even and below 2^62.
const OWN: usize = 1 << 62 | 1;
/// The lowest integer of an emulated handle.
const FIRST_OWN_NUMBER: c_int = 1 << 30;

/// The addresses of Open MPI's callbacks that do not copy and do not delete an attribute,
/// for communicators, datatypes and windows.
static NOTHING: [[AtomicUsize; 2]; 3] = [const { [AtomicUsize::new(0), AtomicUsize::new(0)] }; 3];

fn nothing(kind: Kind) -> &'static [AtomicUsize; 2] {
    match kind {
        Kind::Datatype => &NOTHING[1],
        Kind::Win => &NOTHING[2],
        _ => &NOTHING[0],
    }
}

impl Family for OnOpenMpi {
    type Handle = usize;
    type Status = StandardStatus;
    type Below = usize;
    type BelowStatus = OpenMpiStatus;

    const STATUS_IGNORE: usize = 0;
    const BELOW_STATUS_IGNORE: usize = 0;
    const DISPLACEMENT_CURRENT: i64 = -1;
    const BELOW_DISPLACEMENT_CURRENT: i64 = -54_278_278;

    #[inline(always)]
    fn handle_in(_kind: Kind, handle: usize) -> usize {
        if handle >= FIRST_DYNAMIC {
            return handle;
        }
        object(handle)
    }

    #[inline(always)]
    fn handle_out(kind: Kind, handle: usize) -> usize {
        match kind {
            // The only predefined request is the null handle.
            Kind::Request if handle == 0 || handle == object(Kind::Request.null()) => {
                Kind::Request.null()
            }
            Kind::Request => handle,
            _ => match handle_of(handle) {
                0 => kind.null(),
                known => known,
            },
        }
    }

    fn is_none(handle: usize) -> bool {
        handle == 0
    }

    #[inline(always)]
    fn null(kind: Kind) -> usize {
        object(kind.null())
    }

    fn no_file() -> usize {
        object(Kind::File.null())
    }

    fn file_in(file: usize) -> usize {
        Self::handle_in(Kind::File, file)
    }

    fn file_out(file: usize) -> usize {
        Self::handle_out(Kind::File, file)
    }

    #[inline(always)]
    fn word_in(word: Word, value: c_int) -> c_int {
        words::word_in(word, value)
    }

    #[inline(always)]
    fn word_out(word: Word, value: c_int) -> c_int {
        words::word_out(word, value)
    }

    fn standard(word: Word, below: c_int) -> c_int {
        words::word_out(word, below)
    }

    /// Returns `buffer` unchanged, because Open MPI's buffer constants equal the standard's.
    /// `MPI_BUFFER_AUTOMATIC` is emulated.
    #[inline(always)]
    fn buffer_in(buffer: *mut c_void) -> *mut c_void {
        buffer
    }

    fn buffer_out(buffer: *mut c_void) -> *mut c_void {
        buffer
    }

    fn weights_in(weights: *mut c_int) -> *mut c_int {
        match weights.addr() {
            UNWEIGHTED => without_provenance_mut(UNWEIGHTED_BELOW),
            WEIGHTS_EMPTY => without_provenance_mut(WEIGHTS_EMPTY_BELOW),
            _ => weights,
        }
    }

    fn pvar_in(handle: usize) -> usize {
        match handle {
            PVAR_ALL_HANDLES => ALL_HANDLES_BELOW,
            other => other,
        }
    }

    fn limit(limit: Limit) -> usize {
        limit.of_standard()
    }

    #[inline(always)]
    fn status_in(status: &StandardStatus) -> StandardStatus {
        *status
    }

    #[inline(always)]
    fn status_out(status: &StandardStatus) -> StandardStatus {
        *status
    }

    #[inline(always)]
    fn status_below(status: &StandardStatus) -> OpenMpiStatus {
        OpenMpiStatus::of_standard(status)
    }

    #[inline(always)]
    fn status_above(status: &OpenMpiStatus) -> StandardStatus {
        status.to_standard()
    }

    fn status_error(status: &StandardStatus) -> c_int {
        status.error
    }

    fn no_functions(kind: Kind) -> (usize, usize) {
        let [copy, delete] = nothing(kind);
        (copy.load(Ordering::Relaxed), delete.load(Ordering::Relaxed))
    }

    #[inline]
    fn program<R>(call: impl FnOnce() -> R) -> R {
        reentrancy::outside(call)
    }

    #[inline(always)]
    fn request_left(request: usize) {
        compat::foreign_below::request_left::<Self>(request);
    }
}

/// The handle types as spelled in `MPI_X_c2f` and `MPI_X_f2c`, in the order of [`Kind`].
const TYPES: [&str; 11] = [
    "Comm",
    "Group",
    "Win",
    "File",
    "Session",
    "Message",
    "Info",
    "Errhandler",
    "Request",
    "Op",
    "Type",
];

impl Foreign for OnOpenMpi {
    const NAME: &'static str = "Open MPI";
    const FILES: &'static [&'static str] = &["libmpi.so.40"];
    const MARK: &'static CStr = c"ompi_mpi_comm_world";

    fn learn(find: &dyn Fn(&CStr) -> *mut c_void) {
        for &(handle, _, null, symbol) in &SYMBOLS {
            let known = |symbol: &CStr| match symbol.is_empty() {
                true => 0,
                false => find(symbol).expose_provenance(),
            };
            let address = match known(symbol) {
                0 => SYMBOLS
                    .iter()
                    .find(|(handle, ..)| *handle == null)
                    .map_or(0, |&(.., symbol)| known(symbol)),
                address => {
                    add(address, handle);
                    address
                }
            };
            if let Some(object) = OBJECTS.get(handle) {
                object.store(address, Ordering::Relaxed);
            }
        }
        let symbol = |name: String| {
            let name = std::ffi::CString::new(name).unwrap_or_default();
            find(&name).expose_provenance()
        };
        for ([to, back], kind) in NUMBERS.iter().zip(TYPES) {
            to.store(symbol(format!("MPI_{kind}_c2f")), Ordering::Relaxed);
            back.store(symbol(format!("MPI_{kind}_f2c")), Ordering::Relaxed);
        }
        for ([copy, delete], kind) in NOTHING.iter().zip(["COMM", "TYPE", "WIN"]) {
            let name = |what: &str| format!("OMPI_C_MPI_{kind}_NULL_{what}_FN");
            copy.store(symbol(name("COPY")), Ordering::Relaxed);
            delete.store(symbol(name("DELETE")), Ordering::Relaxed);
        }
    }

    fn integer_of(kind: Kind, handle: usize) -> c_int {
        if let Some(number) = Self::emulated_index(kind, handle) {
            return c_int::try_from(number).map_or(kind.null() as c_int, |n| n | FIRST_OWN_NUMBER);
        }
        let function = NUMBERS[kind as usize][0].load(Ordering::Relaxed);
        if function == 0 {
            return kind.null() as c_int;
        }
        let function = std::ptr::with_exposed_provenance::<c_void>(function);
        // SAFETY: Open MPI's header declares the symbol as a function with this signature.
        let number = unsafe {
            let function: unsafe extern "C-unwind" fn(usize) -> c_int =
                std::mem::transmute(function);
            function(handle)
        };
        number.saturating_add(FIRST_NUMBER)
    }

    fn of_integer(kind: Kind, integer: c_int) -> usize {
        if let Ok(number) = usize::try_from(integer - FIRST_OWN_NUMBER) {
            return Self::emulated(kind, number);
        }
        let function = NUMBERS[kind as usize][1].load(Ordering::Relaxed);
        if function == 0 {
            return Self::null(kind);
        }
        let function = std::ptr::with_exposed_provenance::<c_void>(function);
        // SAFETY: Open MPI's header declares the symbol as a function with this signature.
        unsafe {
            let function: unsafe extern "C-unwind" fn(c_int) -> usize =
                std::mem::transmute(function);
            function(integer.saturating_sub(FIRST_NUMBER))
        }
    }

    fn request_number(request: usize) -> usize {
        request
    }

    fn of_request_number(number: usize) -> usize {
        number
    }

    fn emulated(_kind: Kind, number: usize) -> usize {
        OWN | number << 4
    }

    #[inline(always)]
    fn emulated_index(_kind: Kind, handle: usize) -> Option<usize> {
        (handle & OWN == OWN).then_some((handle & !OWN) >> 4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keyvals_and_codes_of_programs_are_apart_from_the_standards() {
        assert_eq!(OnOpenMpi::word_in(Word::Keyval, 501), 0);
        let above = OnOpenMpi::word_out(Word::Keyval, 501);
        assert_eq!(OnOpenMpi::word_in(Word::Keyval, above), 501);
        assert_eq!(OnOpenMpi::word_out(Word::Keyval, -1), KEYVAL_INVALID);
        let added = OnOpenMpi::word_out(Word::Error, 93);
        assert_eq!(added, compat::family::LAST_CODE + 1);
        assert_eq!(OnOpenMpi::word_in(Word::Error, added), 93);
        assert_eq!(OnOpenMpi::word_in(Word::Lock, 1), INVALID);
    }
}
