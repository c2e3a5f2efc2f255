//! Programs of the standard ABI on another library: functions that no table describes, and functions that this library lacks.
//!
//! The exported functions are those of the standard, so the whole is called `libmpi_abi.so.1`. [`open`] finds the backend,
//! fills the slots of its functions, and uses a function from `fallbacks` where it has none.
//! The build finds the functions here, as those of [`crate::hand`], by their form `pub unsafe fn MPI_X<F: Foreign>`.
#![allow(unsafe_code, non_snake_case)]
#![allow(clippy::missing_safety_doc, clippy::too_many_arguments)]
// SAFETY in this module: the arguments are those of the program, which the standard obliges to be valid, and are used only as the standard allows.

mod duplicates;
mod error_handlers;
mod fallbacks;
mod fortran;
mod infos;
mod integers;
mod kept;
mod open;
mod operators;
mod own;
mod refusal;
mod standard;
mod statuses;
mod typed_blocks;

pub use duplicates::*;
pub use error_handlers::*;
pub use fortran::*;
pub use integers::*;
pub use kept::request_left;
pub use open::open;
pub use operators::*;
pub use statuses::*;
pub use typed_blocks::*;

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
    fn own(kind: Kind, number: usize) -> Self::Below;
    fn own_index(kind: Kind, handle: Self::Below) -> Option<usize>;
}
