//! What differs between the ABIs: handles, constants and the layout of a status.

use std::ffi::{c_int, c_void};

include!(concat!(env!("OUT_DIR"), "/words.rs"));

/// A value that no constant of the standard has, for what the caller's ABI does not name either.
pub const INVALID: c_int = c_int::MIN + 11;

/// `MPI_KEYVAL_INVALID` of the standard.
pub const KEYVAL_INVALID: c_int = 0;
/// The library's keyvals of programs begin here; predefined ones of every family are elsewhere.
pub const FIRST_KEYVAL: c_int = 1024;
/// `MPI_UNDEFINED`, which is the same in every ABI.
pub const UNDEFINED: c_int = -32766;
/// `MPI_ERR_LASTCODE` of the standard: codes that programs add are above.
pub const LAST_CODE: c_int = 16383;
/// Predefined handles of the standard are below.
pub const FIRST_DYNAMIC: usize = 0x1000;
/// A handle that the library below knows to be none.
pub const NO_HANDLE: usize = usize::MAX;

/// `MPI_IN_PLACE` and `MPI_BUFFER_AUTOMATIC` of the standard.
pub const IN_PLACE: usize = 1;
pub const BUFFER_AUTOMATIC: usize = 2;
/// `MPI_UNWEIGHTED` and `MPI_WEIGHTS_EMPTY` of the standard.
pub const UNWEIGHTED: usize = 10;
pub const WEIGHTS_EMPTY: usize = 11;
/// `MPI_T_PVAR_ALL_HANDLES` of the standard.
pub const PVAR_ALL_HANDLES: usize = 1;

/// The outcome of a receive in the standard ABI, whose inner words hold what this library writes there: the received bytes in
/// the first two, and whether the operation was cancelled in the third.
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

/// The types of handles; files are apart, since MPICH has pointers there and numbers elsewhere.
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
    /// The null handle of the standard.
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

/// Strings whose length programs know from a constant.
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
    /// The standard's length, which is no shorter than that of any family.
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

/// Two ABIs, that of the program and that of the library below, one of which is the standard's.
/// `in` is from the program to the library, `out` the other way.
pub trait Family: 'static {
    /// Every handle of the program but that of a file.
    type Handle: Copy + PartialEq;
    type Status: Copy;
    /// The same of the library below.
    type Below: Copy + PartialEq + Send + 'static;
    type BelowStatus: Copy + Send + 'static;

    /// The address that stands for no status, or no array of them, in the program and below.
    const STATUS_IGNORE: usize;
    const BELOW_STATUS_IGNORE: usize;
    /// `MPI_DISPLACEMENT_CURRENT` of the program and below.
    const DISPLACEMENT_CURRENT: i64;
    const BELOW_DISPLACEMENT_CURRENT: i64;

    fn handle_in(kind: Kind, handle: Self::Handle) -> Self::Below;
    fn handle_out(kind: Kind, handle: Self::Below) -> Self::Handle;
    /// Whether the library below would take a handle for none at all, since the program's was none.
    fn is_none(handle: Self::Below) -> bool;
    /// The null handle of the library below, and that of a file.
    fn null(kind: Kind) -> Self::Below;
    fn no_file() -> usize;
    fn file_in(file: usize) -> usize;
    fn file_out(file: usize) -> usize;

    fn word_in(word: Word, value: c_int) -> c_int;
    fn word_out(word: Word, value: c_int) -> c_int;

    /// The standard's number for a constant of the library below.
    fn standard(word: Word, below: c_int) -> c_int;

    fn buffer_in(buffer: *mut c_void) -> *mut c_void;
    fn buffer_out(buffer: *mut c_void) -> *mut c_void;
    fn weights_in(weights: *mut c_int) -> *mut c_int;
    fn pvar_in(handle: usize) -> usize;

    /// The bytes of such a string in the program, its end included.
    fn limit(limit: Limit) -> usize;

    /// Layouts alone: the words in them are those of the side that the status comes from.
    fn status_in(status: &Self::Status) -> StandardStatus;
    fn status_out(status: &StandardStatus) -> Self::Status;
    fn status_below(status: &StandardStatus) -> Self::BelowStatus;
    fn status_above(status: &Self::BelowStatus) -> StandardStatus;
    /// The error field, which stays where the standard leaves it alone.
    fn status_error(status: &Self::Status) -> c_int;

    /// The functions of the library below that copy no attribute and delete nothing.
    fn no_functions(kind: Kind) -> (usize, usize);

    /// Runs a function of the program that the library below has called.
    #[inline(always)]
    fn program<R>(call: impl FnOnce() -> R) -> R {
        call()
    }

    /// A request of the library below is no longer the program's: what it still read may go.
    #[inline(always)]
    fn request_left(_request: Self::Below) {}
}

/// A family whose library below is `libmpi_abi.so.1`.
pub trait OnStandard: Family<Below = usize, BelowStatus = StandardStatus> {}

impl<F: Family<Below = usize, BelowStatus = StandardStatus>> OnStandard for F {}

/// Flags, one by one; a flag that the caller's ABI does not name stays one that the standard does not name either.
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

/// A rank or tag that is negative and no constant: only `MPI_UNDEFINED` means something.
#[cold]
pub fn unnamed(value: c_int) -> c_int {
    if value == UNDEFINED { value } else { INVALID }
}
