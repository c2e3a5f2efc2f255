//! Functions that no table describes and that need extensions of Portcullis's `libmpi_abi.so.1`: operators and error handlers with a
//! context, duplication with a callback, and collective operations that read their arrays before they return.
#![allow(unsafe_code, non_snake_case)]
#![allow(clippy::missing_safety_doc, clippy::too_many_arguments)]
// SAFETY in this module: the arguments are those of the program, which the standard obliges to be valid, and are used only as the standard allows.

mod duplicates;
mod error_handlers;
mod operators;
mod typed_blocks;

pub use duplicates::*;
pub use error_handlers::*;
pub use operators::*;
pub use typed_blocks::*;
