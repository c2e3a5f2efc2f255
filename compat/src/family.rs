//! Differences between MPI ABIs: handles, constants and the layout of a status.

use std::ffi::{c_int, c_void};
use std::sync::atomic::AtomicU8;

// `Word`: the kinds of integer arguments whose named constants differ between ABIs.
// An example is `Word::PvarClass`.
include!(concat!(env!("OUT_DIR"), "/words.rs"));

/// A value that equals no constant of the standard ABI. Replaces values undefined in another ABI.
pub const INVALID: c_int = c_int::MIN + 11;

/// `MPI_KEYVAL_INVALID` of the standard.
pub const KEYVAL_INVALID: c_int = 0;
/// The lowest keyval that `libmpi_abi.so.1` gives to programs. Its predefined keyvals are smaller.
pub const FIRST_KEYVAL: c_int = 1024;
/// `MPI_UNDEFINED`, which is the same in every ABI.
pub const UNDEFINED: c_int = -32766;
/// `MPI_ERR_LASTCODE` of the standard. Codes that programs add are larger.
pub const LAST_CODE: c_int = 16383;
/// The first dynamic handle of the standard. Predefined handles are smaller.
pub const FIRST_DYNAMIC: usize = 0x1000;
/// A handle that the backend rejects as invalid.
pub const NO_HANDLE: usize = usize::MAX;

/// `MPI_IN_PLACE` and `MPI_BUFFER_AUTOMATIC` of the standard.
pub const IN_PLACE: usize = 1;
pub const BUFFER_AUTOMATIC: usize = 2;
/// `MPI_UNWEIGHTED` and `MPI_WEIGHTS_EMPTY` of the standard.
pub const UNWEIGHTED: usize = 10;
pub const WEIGHTS_EMPTY: usize = 11;
/// `MPI_T_PVAR_ALL_HANDLES` of the standard.
pub const PVAR_ALL_HANDLES: usize = 1;

/// The status of the standard ABI. Its reserved fields are used as in `libmpi_abi.so.1`:
/// the number of received bytes in the first two words, the cancelled flag in the third.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StandardStatus {
    pub source: c_int,
    pub tag: c_int,
    pub error: c_int,
    pub internal: [c_int; 5],
}

impl StandardStatus {
    #[inline(always)]
    pub fn bytes(&self) -> i64 {
        i64::from(self.internal[1]) << 32 | i64::from(self.internal[0] as u32)
    }

    #[inline(always)]
    pub fn with(bytes: i64, cancelled: bool) -> Self {
        let mut status = StandardStatus::default();
        status.internal[0] = bytes as c_int;
        status.internal[1] = (bytes >> 32) as c_int;
        status.internal[2] = cancelled.into();
        status
    }

    #[inline(always)]
    pub fn is_cancelled(&self) -> bool {
        self.internal[2] != 0
    }
}

/// The handle types. [`Family`] has separate functions for files, since MPICH's are pointers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Comm,
    Group,
    Win,
    File,
    Session,
    Message,
    Info,
    Errhandler,
    Request,
    Op,
    Datatype,
}

impl Kind {
    /// Returns the standard's null handle of this type.
    pub const fn null(self) -> usize {
        match self {
            Kind::Comm => 0x100,
            Kind::Group => 0x108,
            Kind::Win => 0x110,
            Kind::File => 0x118,
            Kind::Session => 0x120,
            Kind::Message => 0x128,
            Kind::Info => 0x130,
            Kind::Errhandler => 0x140,
            Kind::Request => 0x180,
            Kind::Op => 0x20,
            Kind::Datatype => 0x200,
        }
    }
}

/// The handle types as Rust types, for arguments whose handle type is known at compile time.
pub mod of {
    use super::Kind;

    /// A handle type, as a Rust type.
    pub trait HandleType {
        const KIND: Kind;
    }

    macro_rules! types {
        ($($name:ident)*) => { $(
            #[derive(Debug)]
            pub struct $name;

            impl HandleType for $name {
                const KIND: Kind = Kind::$name;
            }
        )* };
    }

    types! { Comm Group Win Session Message Info Errhandler Request Op Datatype }
}

/// The strings whose maximum length is a constant of the ABI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    ObjectName,
    ErrorString,
    ProcessorName,
    LibraryVersion,
    InfoKey,
    PortName,
}

impl Limit {
    /// Returns the maximum size in the standard ABI, in bytes. No ABI has a larger maximum.
    pub fn of_standard(self) -> usize {
        match self {
            Limit::ObjectName => 128,
            Limit::ErrorString => 512,
            Limit::ProcessorName | Limit::InfoKey => 256,
            Limit::LibraryVersion => 8192,
            Limit::PortName => 1024,
        }
    }
}

/// A pair of ABIs: the program's and the backend's. One of them is the standard ABI.
/// `in` converts from the program to the backend, `out` in the other direction.
pub trait Family: 'static {
    /// The program's type of handles, except file handles.
    type Handle: Copy + PartialEq;
    type Status: Copy;
    /// The backend's types of handles (except file handles) and statuses.
    type Below: Copy + PartialEq + Send + 'static;
    type BelowStatus: Copy + Send + 'static;

    /// The addresses of `MPI_STATUS_IGNORE` and
    /// `MPI_STATUSES_IGNORE` in the program and the backend.
    const STATUS_IGNORE: usize;
    const BELOW_STATUS_IGNORE: usize;
    /// `MPI_DISPLACEMENT_CURRENT`, in the program and in the backend.
    const DISPLACEMENT_CURRENT: i64;
    const BELOW_DISPLACEMENT_CURRENT: i64;

    fn handle_in(kind: Kind, handle: Self::Handle) -> Self::Below;
    fn handle_out(kind: Kind, handle: Self::Below) -> Self::Handle;
    /// Returns true for the value that [`Family::handle_in`] returns for an invalid handle.
    fn is_none(handle: Self::Below) -> bool;
    /// Returns the backend's null handle of a type. For files, use [`Family::no_file`].
    fn null(kind: Kind) -> Self::Below;
    fn no_file() -> usize;
    fn file_in(file: usize) -> usize;
    fn file_out(file: usize) -> usize;

    fn word_in(word: Word, value: c_int) -> c_int;
    fn word_out(word: Word, value: c_int) -> c_int;

    /// Converts a constant of the backend to the standard's constant.
    fn standard(word: Word, below: c_int) -> c_int;

    fn buffer_in(buffer: *mut c_void) -> *mut c_void;
    fn buffer_out(buffer: *mut c_void) -> *mut c_void;
    fn weights_in(weights: *mut c_int) -> *mut c_int;
    fn pvar_in(handle: usize) -> usize;

    /// Returns the maximum size of a string in the program's ABI, in bytes with the NUL.
    fn limit(limit: Limit) -> usize;

    /// The four `status_` conversions change only the layout of a status, not its constants.
    fn status_in(status: &Self::Status) -> StandardStatus;
    fn status_out(status: &StandardStatus) -> Self::Status;
    fn status_below(status: &StandardStatus) -> Self::BelowStatus;
    fn status_above(status: &Self::BelowStatus) -> StandardStatus;
    /// Returns the error field of the program's status.
    /// Functions with a single status leave the field unchanged.
    fn status_error(status: &Self::Status) -> c_int;

    /// Returns the backend's predefined callbacks that do not copy and do not delete.
    fn no_functions(kind: Kind) -> (usize, usize);

    /// Runs a callback of the program, which the backend has called.
    #[inline(always)]
    fn program<R>(call: impl FnOnce() -> R) -> R {
        call()
    }

    /// Returns the language flag of a generalized request: 0 if the callbacks are in Fortran.
    /// Open MPI's Fortran library stores the flag after the start of the request.
    fn language_of_callbacks(_request: Self::Handle) -> Option<&'static AtomicU8> {
        None
    }

    /// Called when a request of the program has ended. Releases the buffers kept for the request.
    #[inline(always)]
    fn request_left(_request: Self::Below) {}
}

/// A pair of ABIs in which the backend is `libmpi_abi.so.1`.
pub trait OnStandard: Family<Below = usize, BelowStatus = StandardStatus> {}

impl<F: Family<Below = usize, BelowStatus = StandardStatus>> OnStandard for F {}

/// Converts each flag in `value` by the pair that contains it.
/// If `value` has flags that are in no pair, the result has the undefined flag `1 << 30`.
#[inline(always)]
pub fn bits(value: c_int, pairs: &[(c_int, c_int)]) -> c_int {
    let (mut left, mut result) = (value, 0);
    for (from, to) in pairs {
        if left & from != 0 {
            left &= !from;
            result |= to;
        }
    }
    if left == 0 { result } else { result | 1 << 30 }
}

/// Converts a negative rank or tag that is not a constant: only `MPI_UNDEFINED` stays the same.
#[cold]
pub fn unnamed(value: c_int) -> c_int {
    if value == UNDEFINED { value } else { INVALID }
}
