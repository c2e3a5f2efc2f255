//! What the libraries for programs of other MPI ABIs share (`libmpi.so.12` of MPICH and Intel MPI, `libmpi.so.40` of Open MPI).
//!
//! Promise: a program that was compiled against another MPI's header runs on `libmpi_abi.so.1`, which these libraries open.
//! An exported function converts its arguments, calls the function of the same name below, and converts what comes back.
//! Most functions are written by the build from tables (`compat/api`, `mpi-abi/api`); those in [`hand`] take or keep arrays of
//! handles, statuses, functions of the program, or attributes.
//! What differs between families is one trait, [`Family`].
#![deny(unsafe_code)]

pub mod below;
pub mod blocks;
pub mod convert;
mod environment;
pub mod family;
pub mod foreign_below;
pub mod hand;
pub mod here;
pub mod inside;
pub mod layout;
mod lock;
pub mod standard_below;
mod status;
mod trampoline;

pub use family::{Family, Kind, Limit, StandardStatus, Word};
