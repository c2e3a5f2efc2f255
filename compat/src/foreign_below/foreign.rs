//! Differences between MPICH and Open MPI as backends for programs of the standard ABI.

use crate::family::{Family, Kind, StandardStatus};
use std::ffi::{CStr, c_int, c_void};

/// A pair of ABIs: the program uses the standard ABI, the backend is MPICH or Open MPI.
pub trait Foreign: Family<Handle = usize, Status = StandardStatus> {
    /// The name of the MPI library, for error texts.
    const NAME: &'static str;
    /// File names that the loader tries if `PORTCULLIS_ON` is not set.
    const FILES: &'static [&'static str];
    /// A symbol by which a library with this ABI is recognized: no other library exports it.
    const MARK: &'static CStr;

    /// Reads the backend's values of predefined handles and constants that are symbols.
    fn learn(find: &dyn Fn(&CStr) -> *mut c_void);

    /// Converts a dynamic handle to an integer (`MPI_X_toint`), and back.
    /// The integer is at least 0x1000: smaller integers denote predefined handles.
    fn integer_of(kind: Kind, handle: Self::Below) -> c_int;
    fn of_integer(kind: Kind, integer: c_int) -> Self::Below;

    /// Converts a handle (request, communicator, datatype, session) to a unique integer, and back.
    fn request_number(request: Self::Below) -> usize;
    fn of_request_number(number: usize) -> Self::Below;

    /// `emulated` makes the handle of the emulated object with this index.
    /// `emulated_index` returns the index, or `None` for a handle of the backend.
    /// The backend never returns these handles.
    fn emulated(kind: Kind, number: usize) -> Self::Below;
    fn emulated_index(kind: Kind, handle: Self::Below) -> Option<usize>;
}
