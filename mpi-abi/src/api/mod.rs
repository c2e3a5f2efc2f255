//! The MPI functions, one file per chapter or subject.
//!
//! A function here has the name of the standard's C binding.
//! The build script exports the function under this name.
//! An MPI function returns `Result<(), Failure>`, or the value itself, as `MPI_Wtime` does.
//! The parameters are those of the binding, with the types of `args` for pointers.
//! A buffer with its count and datatype is one parameter,
//! and so is a string with the pointer to its size.
//! An `unsafe` function has C pointers; its contract is the standard's contract for the C caller.
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
pub mod lane;
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
