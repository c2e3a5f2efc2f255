//! MPICH's ABI as the backend of programs of the standard ABI.
//!
//! Handles have 32 bits. Dynamic handles are passed unchanged.
//!
//! MPICH's error codes contain the class, the message and an instance number.
//! Such a code is mapped to a value above all codes that programs add, and back without loss.
//! So `MPI_Error_string` finds MPICH's own text for the code.
#![allow(unsafe_code)]

use compat::convert::{own_class_in, own_class_out};
use compat::family::{
    BUFFER_AUTOMATIC, FIRST_DYNAMIC, IN_PLACE, INVALID, LAST_CODE, NO_HANDLE, PVAR_ALL_HANDLES,
    UNWEIGHTED, WEIGHTS_EMPTY, bits, unnamed,
};
use compat::foreign_below::Foreign;
use compat::layout::MpichStatus;
use compat::reentrancy;
use compat::static_ref;
use compat::{Family, Kind, Limit, StandardStatus, Word};
use std::ffi::{CStr, c_int, c_void};
use std::ptr::without_provenance_mut;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// Conversion rules for programs of the standard ABI on MPICH (see [`Family`]).
#[derive(Clone, Copy, Debug)]
pub struct OnMpich;

mod words {
    use super::*;
    include!(concat!(env!("OUT_DIR"), "/words.rs"));
}

include!(concat!(env!("OUT_DIR"), "/handles.rs"));

/// The predefined handles of one type, as pairs of MPICH's and the standard's value.
/// The index consists of the highest bit and the lowest seven bits of MPICH's handle.
pub struct Predefined {
    null: (u32, u32),
    slots: [(u32, u32); 256],
}

impl Predefined {
    #[inline(always)]
    fn find(&self, handle: u32) -> usize {
        let (theirs, standard) = self.slots[(handle & 0x7f | (handle >> 31) << 7) as usize];
        if theirs == handle {
            standard as usize
        } else if handle == self.null.0 {
            self.null.1 as usize
        } else {
            handle as usize
        }
    }
}

/// Returns the table of a handle type. The table of files is empty: file handles are pointers.
#[inline(always)]
fn table(kind: Kind) -> &'static Predefined {
    match kind {
        Kind::Comm => &MPI_COMM,
        Kind::Group => &MPI_GROUP,
        Kind::Win => &MPI_WIN,
        Kind::File => &MPI_FILE,
        Kind::Session => &MPI_SESSION,
        Kind::Message => &MPI_MESSAGE,
        Kind::Info => &MPI_INFO,
        Kind::Errhandler => &MPI_ERRHANDLER,
        Kind::Request => &MPI_REQUEST,
        Kind::Op => &MPI_OP,
        Kind::Datatype => &MPI_DATATYPE,
    }
}

/// MPICH's largest predefined error code. Codes that programs add are larger.
const LAST_BELOW: c_int = 0x3fff_ffff;
/// The bits of an error code that contain the error class, in MPICH.
const CLASS: c_int = 0x7f;
/// The offset of MPICH's detailed error codes in the program: above all codes that programs add.
const DETAILED: c_int = 0x4000_4000;
/// The value of `MPI_ERR_OTHER` in the standard.
const OTHER: c_int = 16;

fn added_error_in(code: c_int) -> c_int {
    if code >= DETAILED {
        return code - DETAILED;
    }
    match code.checked_sub(LAST_CODE) {
        Some(above @ 1..) => LAST_BELOW + above,
        _ if (0..=LAST_CODE).contains(&code) => own_class_in(code),
        _ => INVALID,
    }
}

fn added_error_out(code: c_int) -> c_int {
    if let Some(class) = own_class_out(code) {
        return class;
    }
    match code.checked_sub(LAST_BELOW) {
        Some(above @ 1..) => LAST_CODE + above,
        _ if code <= CLASS => OTHER,
        _ => match code.checked_add(DETAILED) {
            Some(detailed) => detailed,
            None => words::word_out(Word::Error, code & CLASS),
        },
    }
}

/// Passes keyvals unchanged, since MPICH's keyvals differ from all constants of the standard.
fn added_keyval_in(keyval: c_int) -> c_int {
    keyval
}

fn added_keyval_out(keyval: c_int) -> c_int {
    keyval
}

/// The upper six bits of emulated handles: a combination that MPICH's handles do not have.
const OWN: u32 = 0x3c00_0000;
const OWN_BITS: u32 = 0xfc00_0000;

const IN_PLACE_BELOW: usize = usize::MAX;
const BUFFER_AUTOMATIC_BELOW: usize = usize::MAX - 1;

/// The lowest index byte of the datatypes that MPICH 5.0 added (`MPI_LOGICAL1` etc.).
/// An older MPICH crashes on handles of these datatypes.
const FIRST_LATER: u32 = 0x47;

/// MPICH's handles, indexed by the standard's predefined handle.
/// The entry is MPICH's null handle of the type if MPICH has no such handle.
static BELOW: [AtomicU32; FIRST_DYNAMIC] = {
    let mut below = [const { AtomicU32::new(0) }; FIRST_DYNAMIC];
    let mut handle = 0;
    while handle < FIRST_DYNAMIC {
        below[handle] = AtomicU32::new(THEIRS[handle]);
        handle += 1;
    }
    below
};

/// Replaces the datatypes of MPICH 5.0 by the null handle, for an older MPICH.
fn forget_later() {
    let null = MPI_DATATYPE.null;
    for below in &BELOW[null.1 as usize..] {
        if below.load(Ordering::Relaxed) & 0xff >= FIRST_LATER {
            below.store(null.0, Ordering::Relaxed);
        }
    }
}

/// The values of MPICH's variables `MPI_UNWEIGHTED` and `MPI_WEIGHTS_EMPTY`, read at the start.
static UNWEIGHTED_BELOW: AtomicPtr<c_int> = AtomicPtr::new(std::ptr::null_mut());
static WEIGHTS_EMPTY_BELOW: AtomicPtr<c_int> = AtomicPtr::new(std::ptr::null_mut());
static ALL_HANDLES_BELOW: AtomicPtr<c_int> = AtomicPtr::new(std::ptr::null_mut());

impl Family for OnMpich {
    type Handle = usize;
    type Status = StandardStatus;
    type Below = u32;
    type BelowStatus = MpichStatus;

    const STATUS_IGNORE: usize = 0;
    const BELOW_STATUS_IGNORE: usize = 1;
    const DISPLACEMENT_CURRENT: i64 = -1;
    const BELOW_DISPLACEMENT_CURRENT: i64 = -54_278_278;

    #[inline(always)]
    fn handle_in(_kind: Kind, handle: usize) -> u32 {
        match handle >= FIRST_DYNAMIC {
            true => handle as u32,
            false => static_ref!(BELOW)[handle].load(Ordering::Relaxed),
        }
    }

    #[inline(always)]
    fn handle_out(kind: Kind, handle: u32) -> usize {
        match kind {
            // The only predefined request is the null handle.
            Kind::Request if handle == MPI_REQUEST.null.0 => Kind::Request.null(),
            Kind::Request => handle as usize,
            _ => table(kind).find(handle),
        }
    }

    fn is_none(handle: u32) -> bool {
        handle == 0 || handle == NO_HANDLE as u32
    }

    #[inline(always)]
    fn null(kind: Kind) -> u32 {
        table(kind).null.0
    }

    fn no_file() -> usize {
        0
    }

    fn file_in(file: usize) -> usize {
        if file < FIRST_DYNAMIC { 0 } else { file }
    }

    fn file_out(file: usize) -> usize {
        if file == 0 { Kind::File.null() } else { file }
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

    #[inline(always)]
    fn buffer_in(buffer: *mut c_void) -> *mut c_void {
        const { assert!(IN_PLACE == 1 && BUFFER_AUTOMATIC == 2) };
        match buffer.addr().wrapping_sub(IN_PLACE) {
            0 => without_provenance_mut(IN_PLACE_BELOW),
            1 => without_provenance_mut(BUFFER_AUTOMATIC_BELOW),
            2.. => buffer,
        }
    }

    fn buffer_out(buffer: *mut c_void) -> *mut c_void {
        match buffer.addr() {
            BUFFER_AUTOMATIC_BELOW => without_provenance_mut(BUFFER_AUTOMATIC),
            _ => buffer,
        }
    }

    fn weights_in(weights: *mut c_int) -> *mut c_int {
        match weights.addr() {
            UNWEIGHTED => UNWEIGHTED_BELOW.load(Ordering::Relaxed),
            WEIGHTS_EMPTY => WEIGHTS_EMPTY_BELOW.load(Ordering::Relaxed),
            _ => weights,
        }
    }

    fn pvar_in(handle: usize) -> usize {
        match handle {
            PVAR_ALL_HANDLES => ALL_HANDLES_BELOW.load(Ordering::Relaxed).addr(),
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
    fn status_below(status: &StandardStatus) -> MpichStatus {
        MpichStatus::of_standard(status)
    }

    #[inline(always)]
    fn status_above(status: &MpichStatus) -> StandardStatus {
        status.to_standard()
    }

    fn status_error(status: &StandardStatus) -> c_int {
        status.error
    }

    /// Returns null pointers, MPICH's callbacks that do not copy and do not delete an attribute.
    fn no_functions(_kind: Kind) -> (usize, usize) {
        (0, 0)
    }

    #[inline]
    fn program<R>(call: impl FnOnce() -> R) -> R {
        reentrancy::outside(call)
    }

    #[inline(always)]
    fn request_left(request: u32) {
        compat::foreign_below::request_left::<Self>(request);
    }
}

impl Foreign for OnMpich {
    const NAME: &'static str = "MPICH";
    const FILES: &'static [&'static str] = &["libmpi.so.12", "libmpich.so.12"];
    const MARK: &'static CStr = c"MPI_UNWEIGHTED";

    fn learn(find: &dyn Fn(&CStr) -> *mut c_void) {
        if find(c"MPI_Abi_get_version").is_null() {
            forget_later();
        }
        for (name, place) in [
            (c"MPI_UNWEIGHTED", &UNWEIGHTED_BELOW),
            (c"MPI_WEIGHTS_EMPTY", &WEIGHTS_EMPTY_BELOW),
            (c"MPI_T_PVAR_ALL_HANDLES", &ALL_HANDLES_BELOW),
        ] {
            let variable = find(name).cast::<*mut c_int>();
            if !variable.is_null() {
                // SAFETY: the symbol is a variable of the library with an address as its value.
                place.store(unsafe { variable.read() }, Ordering::Relaxed);
            }
        }
    }

    fn integer_of(_kind: Kind, handle: u32) -> c_int {
        handle as c_int
    }

    fn of_integer(_kind: Kind, integer: c_int) -> u32 {
        integer as u32
    }

    fn request_number(request: u32) -> usize {
        request as usize
    }

    fn of_request_number(number: usize) -> u32 {
        number as u32
    }

    fn emulated(_kind: Kind, number: usize) -> u32 {
        OWN | number as u32 & !OWN_BITS
    }

    #[inline(always)]
    fn emulated_index(_kind: Kind, handle: u32) -> Option<usize> {
        (handle & OWN_BITS == OWN).then_some((handle & !OWN_BITS) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn predefined_handles_come_back_as_they_went_in_and_others_are_themselves() {
        for (kind, handle) in [
            (Kind::Comm, 0x101),
            (Kind::Datatype, 0x209),
            (Kind::Datatype, 0x228),
            (Kind::Request, 0x180),
            (Kind::Op, 0x21),
        ] {
            assert_eq!(
                OnMpich::handle_out(kind, OnMpich::handle_in(kind, handle)),
                handle
            );
        }
        assert_eq!(OnMpich::handle_in(Kind::Comm, 0x101), 0x4400_0000);
        assert_eq!(OnMpich::handle_in(Kind::Comm, 0x8400_0001), 0x8400_0001);
        // A completed request of MPICH has the bits of a predefined handle, but is dynamic.
        assert_eq!(OnMpich::handle_out(Kind::Request, 0x6c00_0001), 0x6c00_0001);
    }

    #[test]
    fn codes_of_mpich_keep_what_they_say_and_classes_become_the_standards() {
        assert_eq!(OnMpich::word_out(Word::Error, 14), 15);
        for code in [0x0c9c_410e, 0x80, 0x4000_0001, 0x4000_0000] {
            let above = OnMpich::word_out(Word::Error, code);
            assert!(above > LAST_CODE, "{code:#x}: {above:#x}");
            assert_eq!(OnMpich::word_in(Word::Error, above), code);
        }
        assert_eq!(OnMpich::word_out(Word::Error, 0x3fff_ff0e), 15);
        // MPICH does not have the standard's error class 200.
        let below = OnMpich::word_in(Word::Error, 200);
        assert!(below < 0 && OnMpich::word_out(Word::Error, below) == 200);
    }

    #[test]
    fn constants_of_the_other_side_are_no_constants() {
        assert_eq!(OnMpich::word_in(Word::Rank, -1), -2);
        assert_eq!(OnMpich::word_in(Word::Lock, 301), 234);
        assert_eq!(OnMpich::word_in(Word::Lock, 234), INVALID);
        assert_eq!(OnMpich::word_in(Word::Rank, -2), INVALID);
    }
}
