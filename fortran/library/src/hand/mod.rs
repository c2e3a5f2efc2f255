//! Bodies that the tables do not describe, each generic over the C functions.
//!
//! The build script finds them by their heads; the exported symbols are generated.
#![allow(unsafe_code)]
// SAFETY of all of it: a Fortran program passes arguments as the interfaces of the modules state.
#![allow(clippy::undocumented_unsafe_blocks, clippy::missing_safety_doc)]

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
