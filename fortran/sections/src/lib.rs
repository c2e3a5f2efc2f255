//! Sections of Fortran arrays as a compiler passes them to a procedure with assumed rank, and their layout in memory.
//!
//! Nothing here calls MPI: `libmpifort_abi` makes datatypes of a [`Layout`].

#![deny(unsafe_code)]

mod descriptor;
mod layout;

pub use descriptor::{Descriptor, Dimension, MAX_RANK, Section};
pub use layout::Layout;
