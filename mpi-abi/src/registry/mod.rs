//! Handles for objects: giving them out, and taking them back when an object is freed.
//!
//! An object knows nothing of the tables, which are in [`state`](crate::state); these functions stand above both.

pub mod comm;
pub mod datatype;
pub mod file;
pub mod session;
pub mod window;
