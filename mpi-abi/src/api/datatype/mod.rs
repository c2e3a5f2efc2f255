//! Datatypes (chapter 5).

pub mod construct;
pub mod contents;
pub mod pack;
pub mod query;
