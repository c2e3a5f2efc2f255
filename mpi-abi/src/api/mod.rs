//! The functions of the C interface, one file for each subject.
//!
//! A function here has the name of the standard's binding and returns `Result<(), Failure>` (or the value itself, where that is the
//! result); the build script finds it by its name and exports it.
//! It has the parameters of the binding, with the types of `args` for pointers: a buffer with its count and its datatype is one
//! parameter, and so is a string with the pointer to its size.
//! A function marked `unsafe` has C's pointers, and its contract is what the standard requires of the caller of the C function.
#![allow(non_snake_case, clippy::missing_safety_doc, clippy::too_many_arguments)]

pub mod abi;
pub(crate) mod args;
pub mod attributes;
pub mod buffer;
pub mod checkpoint;
pub mod collective;
pub mod comm;
pub mod completion;
pub mod datatype;
pub mod device;
pub mod dynamic;
pub mod environment;
pub mod errors;
pub mod eureka;
pub mod fault;
pub mod file;
pub mod groups;
pub mod handles;
pub mod info;
pub mod init;
pub mod intercomm;
pub mod op;
pub mod p2p;
pub mod partitioned;
pub mod probe;
mod replay;
pub mod requests;
pub mod sendrecv;
pub mod session;
pub mod status;
pub mod tool;
pub mod topology;
pub mod trivial_calls;
pub mod window;
