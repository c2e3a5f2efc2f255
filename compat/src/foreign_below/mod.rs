//! Programs of the standard ABI on MPICH or Open MPI.
//!
//! This module has functions that the tables do not describe, and functions that backends lack.
//!
//! This library is named `libmpi_abi.so.1` and exports the functions of the standard.
//! [`open`] finds the backend, and stores the backend's functions in the slots.
//! The module `fallbacks` has functions for the slots of functions that the backend lacks.
//! The build recognizes the functions here by their signature `pub unsafe fn MPI_X<F: Foreign>`.
#![allow(unsafe_code, non_snake_case)]
#![allow(clippy::missing_safety_doc, clippy::too_many_arguments)]
// SAFETY in this module: the standard requires valid arguments from the program.
// The arguments are used only as the standard allows.

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
