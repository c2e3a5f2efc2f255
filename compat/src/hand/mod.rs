//! The functions that no table describes, generic over the family.
//!
//! A function is found by the build because it is written here as `pub unsafe fn MPI_X<F: Family>`, with the types of
//! [`crate::below`] and the family's own for handles (`F::Handle`, files as `usize`) and statuses.
#![allow(unsafe_code, non_snake_case)]
#![allow(clippy::missing_safety_doc, clippy::too_many_arguments)]
// SAFETY of what stands below: arguments are those of the program and are used as the standard's text allows.

mod attributes;
mod datatypes;
mod dropped;
mod events;
mod generalized;
mod keyvals;
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
