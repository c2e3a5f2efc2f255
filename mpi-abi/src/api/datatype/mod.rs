//! Datatypes (chapter 5).

pub mod arrays;
pub mod construct;
pub mod contents;
pub mod external;
pub mod f90;
pub mod pack;
pub mod query;
