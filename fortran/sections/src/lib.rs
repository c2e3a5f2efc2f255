//! Sections of Fortran arrays, as compilers pass them, and their memory layout.
//!
//! This package makes no MPI calls; `libmpifort_abi` creates datatypes from a [`Layout`].

#![deny(unsafe_code)]

mod descriptor;
mod layout;

pub use descriptor::{Descriptor, Dimension, MAX_RANK, Section};
pub use layout::Layout;
