//! Handwritten bodies of procedures that the tables do not fully describe.
//!
//! The build script finds the bodies by their function heads; the exported symbols are generated.
#![allow(unsafe_code)]
// The contract of a body is the interface of its procedure in the standard and in the modules.
// Each argument has the stated type, and is not null unless it is optional.
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
