//! Registration of objects: assigns handles to objects, and removes the handles of freed objects.
//!
//! Objects do not refer to the tables, which are in [`state`](crate::state).
//! Functions of this module update objects and tables together.

pub mod comm;
pub mod datatype;
pub mod file;
pub mod request;
pub mod session;
pub mod window;
