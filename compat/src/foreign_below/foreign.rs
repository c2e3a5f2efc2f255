//! The differences between the libraries that can be the backend of a program of the standard ABI.

use crate::family::{Family, Kind, StandardStatus};
use std::ffi::{CStr, c_int, c_void};

/// A family whose programs use the standard ABI.
pub trait Foreign: Family<Handle = usize, Status = StandardStatus> {
    /// The library's name, for error texts.
    const NAME: &'static str;
    /// Files to search for if the user names none.
    const FILES: &'static [&'static str];
    /// A symbol that all libraries of this family have, and no other library.
    const MARK: &'static CStr;

    /// Reads the addresses of constants that are symbols.
    fn learn(find: &dyn Fn(&CStr) -> *mut c_void);

    /// Converts a dynamic handle to an integer, whose values below 0x1000 are predefined handles, and back.
    fn integer_of(kind: Kind, handle: Self::Below) -> c_int;
    fn of_integer(kind: Kind, integer: c_int) -> Self::Below;

    /// Converts a request or communicator to a unique number, and back.
    fn request_number(request: Self::Below) -> usize;
    fn of_request_number(number: usize) -> Self::Below;

    /// Creates a handle of this library, which the backend never returns, from a number; and returns the number.
    fn emulated(kind: Kind, number: usize) -> Self::Below;
    fn emulated_index(kind: Kind, handle: Self::Below) -> Option<usize>;
}
