//! Functions that the tables do not describe, generic over the [`Family`](crate::Family).
//!
//! The build recognizes a function by its signature `pub unsafe fn MPI_X<F: Family>`.
//! The argument types correspond to those of the backend's functions in [`crate::backend`].
//! Handles are of type `F::Handle`, file handles `usize`, and statuses `F::Status`.
#![allow(unsafe_code, non_snake_case)]
#![allow(clippy::missing_safety_doc, clippy::too_many_arguments)]
// SAFETY in this module: the standard requires valid arguments from the program.
// The arguments are used only as the standard allows.

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
