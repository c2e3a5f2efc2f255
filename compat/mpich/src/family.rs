//! MPICH's ABI: 32-bit handles and a status of 20 bytes.
//!
//! The upper two bits of MPICH's handles distinguish null, predefined and dynamic handles.
//! A dynamic handle of the backend has at most 31 bits.
//! Programs receive the handle with the highest bit set, as in MPICH's dynamic handles.

use compat::convert::{added_in, added_out};
use compat::family::{
    BUFFER_AUTOMATIC, FIRST_DYNAMIC, FIRST_KEYVAL, IN_PLACE, INVALID, KEYVAL_INVALID, NO_HANDLE,
    PVAR_ALL_HANDLES, UNWEIGHTED, WEIGHTS_EMPTY, bits, unnamed,
};
pub use compat::layout::MpichStatus;
use compat::static_ref;
use compat::{Family, Kind, Limit, StandardStatus, Word};
use std::ffi::{c_int, c_void};

/// The ABI of programs compiled against MPICH or a derivative such as Intel MPI.
#[derive(Clone, Copy, Debug)]
pub struct Mpich;

mod words {
    use super::*;
    include!(concat!(env!("OUT_DIR"), "/words.rs"));
}

include!(concat!(env!("OUT_DIR"), "/handles.rs"));

/// MPICH's predefined handles, indexed by the standard's handle.
static OF_PROGRAM: [u32; FIRST_DYNAMIC] = THEIRS;

/// The predefined handles of one type, as pairs of MPICH's and the standard's value.
/// The index consists of the highest bit and the lowest seven bits of MPICH's handle.
pub struct Predefined {
    null: (u32, u32),
    slots: [(u32, u32); 256],
}

/// MPICH's largest predefined error code. Codes that programs add are larger.
const LAST_CODE: c_int = 0x3fff_ffff;
/// The highest bit of a handle, which is set in all dynamic handles.
const DYNAMIC: u32 = 1 << 31;
const NULL_FILE: usize = 0;

fn added_error_in(code: c_int) -> c_int {
    added_in(code, LAST_CODE)
}

fn added_error_out(code: c_int) -> c_int {
    match added_out(code, LAST_CODE) {
        // The standard's error class does not exist in MPICH.
        same if same == code => words::word_out(Word::Error, OTHER),
        added => added,
    }
}

/// The value of `MPI_ERR_OTHER` in the standard.
const OTHER: c_int = 16;

impl Predefined {
    #[inline(always)]
    fn find(&self, handle: u32) -> usize {
        let (theirs, standard) = self.slots[(handle & 0x7f | (handle >> 31) << 7) as usize];
        if theirs == handle {
            standard as usize
        } else if handle & DYNAMIC != 0 {
            (handle & !DYNAMIC) as usize
        } else if handle == self.null.0 {
            self.null.1 as usize
        } else {
            NO_HANDLE
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

/// MPICH's values of `MPI_IN_PLACE` and `MPI_BUFFER_AUTOMATIC`.
const IN_PLACE_THERE: usize = usize::MAX;
const BUFFER_AUTOMATIC_THERE: usize = usize::MAX - 1;

impl Family for Mpich {
    type Handle = u32;
    type Status = MpichStatus;
    type Below = usize;
    type BelowStatus = StandardStatus;

    const STATUS_IGNORE: usize = 1;
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
    fn handle_in(kind: Kind, handle: u32) -> usize {
        table(kind).find(handle)
    }

    #[inline(always)]
    fn handle_out(_kind: Kind, handle: usize) -> u32 {
        match handle >= FIRST_DYNAMIC {
            true => handle as u32 | DYNAMIC,
            false => static_ref!(OF_PROGRAM)[handle],
        }
    }

    fn file_in(file: usize) -> usize {
        if file == NULL_FILE {
            Kind::File.null()
        } else {
            file
        }
    }

    fn file_out(file: usize) -> usize {
        if file == Kind::File.null() {
            NULL_FILE
        } else {
            file
        }
    }

    #[inline(always)]
    fn word_in(word: Word, value: c_int) -> c_int {
        words::word_in(word, value)
    }

    #[inline(always)]
    fn word_out(word: Word, value: c_int) -> c_int {
        words::word_out(word, value)
    }

    #[inline(always)]
    fn buffer_in(buffer: *mut c_void) -> *mut c_void {
        match buffer.addr() {
            IN_PLACE_THERE => std::ptr::without_provenance_mut(IN_PLACE),
            BUFFER_AUTOMATIC_THERE => std::ptr::without_provenance_mut(BUFFER_AUTOMATIC),
            _ => buffer,
        }
    }

    fn buffer_out(buffer: *mut c_void) -> *mut c_void {
        match buffer.addr() {
            BUFFER_AUTOMATIC => std::ptr::without_provenance_mut(BUFFER_AUTOMATIC_THERE),
            _ => buffer,
        }
    }

    fn weights_in(weights: *mut c_int) -> *mut c_int {
        match weights {
            w if w == crate::extras::unweighted() => std::ptr::without_provenance_mut(UNWEIGHTED),
            w if w == crate::extras::weights_empty() => {
                std::ptr::without_provenance_mut(WEIGHTS_EMPTY)
            }
            other => other,
        }
    }

    fn pvar_in(handle: usize) -> usize {
        if handle == crate::extras::all_handles() {
            PVAR_ALL_HANDLES
        } else {
            handle
        }
    }

    fn limit(limit: Limit) -> usize {
        match limit {
            Limit::ObjectName => 128,
            Limit::ErrorString => 512,
            Limit::ProcessorName => 128,
            Limit::LibraryVersion => 8192,
            Limit::InfoKey => 255,
            Limit::PortName => 256,
        }
    }

    #[inline(always)]
    fn status_in(status: &MpichStatus) -> StandardStatus {
        status.to_standard()
    }

    #[inline(always)]
    fn status_out(status: &StandardStatus) -> MpichStatus {
        MpichStatus::of_standard(status)
    }

    #[inline(always)]
    fn status_below(status: &StandardStatus) -> StandardStatus {
        *status
    }

    #[inline(always)]
    fn status_above(status: &StandardStatus) -> StandardStatus {
        *status
    }

    /// Returns null pointers: the standard's callbacks that do not copy or delete an attribute.
    fn no_functions(_kind: Kind) -> (usize, usize) {
        (0, 0)
    }

    fn status_error(status: &MpichStatus) -> c_int {
        status.error
    }
}

/// Returns true for `MPI_LB`, the marker of a structure's lower bound, which MPI-3 has removed.
pub fn is_lower_bound(datatype: u32) -> bool {
    datatype == 0x4c00_0010
}

pub fn is_upper_bound(datatype: u32) -> bool {
    datatype == 0x4c00_0011
}
