//! Programs of the standard ABI on another library: what no table describes and what that library lacks.
//!
//! The exported functions are those of the standard, so `libmpi_abi.so.1` is the name of the whole. [`open`] finds the library
//! below, fills the slots of its functions, and puts a function from [`fallbacks`] where it has none.
//! A function here is found by the build as those of [`crate::hand`] are, as `pub unsafe fn MPI_X<F: Foreign>`.
#![allow(unsafe_code, non_snake_case)]
#![allow(clippy::missing_safety_doc, clippy::too_many_arguments)]
// SAFETY of what stands below: arguments are those of the program and are used as the standard's text allows.

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

/// A family whose programs are the standard's.
pub trait Foreign: Family<Handle = usize, Status = StandardStatus> {
    /// The library's name, for people.
    const NAME: &'static str;
    /// Files that are looked for where the user names none.
    const FILES: &'static [&'static str];
    /// A symbol that all libraries of this family have and no other.
    const MARK: &'static CStr;

    /// Learns the addresses of constants.
    fn learn(find: &dyn Fn(&CStr) -> *mut c_void);

    /// A handle made at run time as an integer, of which predefined ones are below 0x1000, and back.
    fn integer_of(kind: Kind, handle: Self::Below) -> c_int;
    fn of_integer(kind: Kind, integer: c_int) -> Self::Below;

    /// What tells requests and communicators apart, and back.
    fn request_number(request: Self::Below) -> usize;
    fn of_request_number(number: usize) -> Self::Below;

    /// A handle of this library, which the one below never gives out, and its number.
    fn own(kind: Kind, number: usize) -> Self::Below;
    fn own_index(kind: Kind, handle: Self::Below) -> Option<usize>;
}
