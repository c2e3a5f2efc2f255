//! The functions that no table describes and that need what `libmpi_abi.so.1` alone has: operators and error handlers with a
//! context, a duplication that says when its handle is there, collective operations that read their arrays before they return.
#![allow(unsafe_code, non_snake_case)]
#![allow(clippy::missing_safety_doc, clippy::too_many_arguments)]
// SAFETY of what stands below: arguments are those of the program and are used as the standard's text allows.

mod duplicates;
mod error_handlers;
mod operators;
mod typed_blocks;

pub use duplicates::*;
pub use error_handlers::*;
pub use operators::*;
pub use typed_blocks::*;
