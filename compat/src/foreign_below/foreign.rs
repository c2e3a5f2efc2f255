//! Differences between the libraries that can be the backend of programs of the standard ABI.

use crate::family::{Family, Kind, StandardStatus};
use std::ffi::{CStr, c_int, c_void};

/// A pair of ABIs in which the program uses the standard ABI.
pub trait Foreign: Family<Handle = usize, Status = StandardStatus> {
    /// The library's name, for error texts.
    const NAME: &'static str;
    /// Default file names, used without `PORTCULLIS_ON`.
    const FILES: &'static [&'static str];
    /// A symbol that exists in all libraries with this ABI and in no other library.
    const MARK: &'static CStr;

    /// Reads the addresses of constants that are symbols of the backend.
    fn learn(find: &dyn Fn(&CStr) -> *mut c_void);

    /// Converts a dynamic handle to an integer, and back.
    /// Integers below 0x1000 are predefined handles.
    fn integer_of(kind: Kind, handle: Self::Below) -> c_int;
    fn of_integer(kind: Kind, integer: c_int) -> Self::Below;

    /// Converts a request or communicator to a unique number, and back.
    fn request_number(request: Self::Below) -> usize;
    fn of_request_number(number: usize) -> Self::Below;

    /// `emulated` creates a handle from a number; `emulated_index` returns its number.
    /// The backend never returns these handles.
    fn emulated(kind: Kind, number: usize) -> Self::Below;
    fn emulated_index(kind: Kind, handle: Self::Below) -> Option<usize>;
}
