//! Registration of objects: assigns handles, and removes them when an object is freed.
//!
//! Objects do not know the tables, which are in [`state`](crate::state); these functions use both.

pub mod comm;
pub mod datatype;
pub mod file;
pub mod request;
pub mod session;
pub mod window;
