//! Registration of objects: assigns a handle to an object, and removes it when the object is freed.
//!
//! Objects do not refer to the tables, which are in [`state`](crate::state).
//! Functions of this module update objects and tables together.

pub mod comm;
pub mod datatype;
pub mod file;
pub mod request;
pub mod session;
pub mod window;
