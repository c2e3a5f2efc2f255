//! Bodies that the tables do not describe, each generic over the C functions.
//!
//! The build script finds them by their heads; the exported symbols are generated.
#![allow(unsafe_code)]
// The contract of a body is the interface of its procedure, which the standard and the modules give: each argument is a variable, an array or a
// procedure of the stated type, and is not null unless it is optional.
#![allow(clippy::missing_safety_doc)]

mod alltoallw;
mod attributes;
mod callbacks;
mod errhandlers;
mod info;
mod keyvals;
mod operators;
mod predefined;
mod removed;
mod spawn;
mod start;
mod status;
mod topology;

pub use alltoallw::*;
pub use attributes::*;
pub use callbacks::*;
pub use errhandlers::*;
pub use info::*;
pub use keyvals::*;
pub use operators::*;
pub use spawn::*;
pub use start::*;
pub use status::*;
pub use topology::*;
