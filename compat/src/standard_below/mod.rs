//! Functions that the tables do not describe, and that need extensions of `libmpi_abi.so.1`.
//!
//! The extensions are operators and error handlers with a context argument,
//! and nonblocking duplication with a callback.
//! Collectives with a datatype per block rely on that library reading arrays before it returns.
#![allow(unsafe_code, non_snake_case)]
#![allow(clippy::missing_safety_doc, clippy::too_many_arguments)]
// SAFETY in this module: the standard requires valid arguments from the program.
// The arguments are used only as the standard allows.

mod duplicates;
mod error_handlers;
mod operators;
mod typed_blocks;

pub use duplicates::*;
pub use error_handlers::*;
pub use operators::*;
pub use typed_blocks::*;
