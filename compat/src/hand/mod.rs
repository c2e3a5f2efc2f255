//! The functions that no table describes, generic over the family.
//!
//! A function is found by the build because it is written here as `pub unsafe fn MPI_X<F: Family>`, with the types of
//! [`crate::standard`] and the family's own for handles (`F::Handle`, files as `usize`) and statuses.
#![allow(unsafe_code, non_snake_case)]
#![allow(clippy::missing_safety_doc, clippy::too_many_arguments)]
// SAFETY of what stands below: arguments are those of the program and are used as the standard's text allows.

mod attributes;
mod datatypes;
mod duplicates;
mod error_handlers;
mod events;
mod generalized;
mod keyvals;
mod operators;
mod requests;
mod spawn;
mod tools;
mod typed_blocks;

pub use attributes::*;
pub use datatypes::*;
pub use duplicates::*;
pub use error_handlers::*;
pub use events::*;
pub use generalized::*;
pub use keyvals::*;
pub use operators::*;
pub use requests::*;
pub use spawn::*;
pub use tools::*;
pub use typed_blocks::*;
