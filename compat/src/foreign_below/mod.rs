//! Programs of the standard ABI on another library: functions that no table describes, and functions that this library lacks.
//!
//! The exported functions are those of the standard, so the whole is called `libmpi_abi.so.1`. [`open`] finds the backend,
//! fills the slots of its functions, and uses a function from `fallbacks` where it has none.
//! The build finds the functions here, as those of `crate::handwritten`, by their form `pub unsafe fn MPI_X<F: Foreign>`.
#![allow(unsafe_code, non_snake_case)]
#![allow(clippy::missing_safety_doc, clippy::too_many_arguments)]
// SAFETY in this module: the arguments are those of the program, which the standard obliges to be valid, and are used only as the standard allows.

mod duplicates;
mod emulated_requests;
mod error_handlers;
mod fallbacks;
mod foreign;
mod fortran;
mod infos;
mod integers;
mod interposed;
mod kept_buffers;
mod large_counts;
mod open;
mod operators;
mod refusal;
mod standard;
mod statuses;
mod typed_blocks;

pub use duplicates::*;
pub use error_handlers::*;
pub use foreign::Foreign;
pub use fortran::*;
pub use integers::*;
pub use kept_buffers::request_left;
pub use open::open;
pub use operators::*;
pub use statuses::*;
pub use typed_blocks::*;
