//! Functions that need extensions of Portcullis's `libmpi_abi.so.1`, beside the tables.
//!
//! These extensions are operators and error handlers with a context argument,
//! and nonblocking duplication with a callback.
//! Collectives of that library also read their arrays before they return.
#![allow(unsafe_code, non_snake_case)]
#![allow(clippy::missing_safety_doc, clippy::too_many_arguments)]
// SAFETY in this module: the standard requires of the program that its arguments are valid.
// The arguments are used only as the standard allows.

mod duplicates;
mod error_handlers;
mod operators;
mod typed_blocks;

pub use duplicates::*;
pub use error_handlers::*;
pub use operators::*;
pub use typed_blocks::*;
