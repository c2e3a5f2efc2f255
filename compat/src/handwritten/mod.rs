//! Functions that no table describes, generic over the family.
//!
//! The build finds a function by its form `pub unsafe fn MPI_X<F: Family>`, with the types of
//! [`crate::backend`] and the family's own types for handles (`F::Handle`, files as `usize`) and statuses.
#![allow(unsafe_code, non_snake_case)]
#![allow(clippy::missing_safety_doc, clippy::too_many_arguments)]
// SAFETY in this module: the arguments are those of the program, which the standard obliges to be valid, and are used only as the standard allows.

mod attributes;
mod datatypes;
mod dropped;
mod events;
pub mod generalized;
pub mod keyvals;
mod requests;
mod spawn;
mod tools;

pub use attributes::*;
pub use datatypes::*;
pub use dropped::*;
pub use events::*;
pub use generalized::*;
pub use keyvals::*;
pub use requests::*;
pub use spawn::*;
pub use tools::*;
