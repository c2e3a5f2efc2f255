//! Names and numbers of the watched functions, and values of operators; the build generates them.

include!(concat!(env!("OUT_DIR"), "/names.rs"));
