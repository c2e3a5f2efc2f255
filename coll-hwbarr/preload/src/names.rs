//! The names and numbers of the functions that are watched, and the values of operators, written by the build.

include!(concat!(env!("OUT_DIR"), "/names.rs"));
