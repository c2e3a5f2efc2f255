//! Common code of the compatibility libraries, which let programs run on an MPI with another ABI.
//!
//! A program compiled with another MPI's header (MPICH, Open MPI) runs on `libmpi_abi.so.1`.
//! The libraries for this are `libmpi.so.12` (MPICH, Intel MPI) and `libmpi.so.40` (Open MPI).
//! An exported function converts the arguments, calls the backend's function, and converts results.
//! Most functions are generated at build time from tables (`compat/api`, `mpi-abi/api`).
//! Functions in `handwritten` have arguments that the tables cannot describe:
//! arrays of handles or statuses, callbacks, attributes.
//! The trait [`Family`] describes the differences between ABIs.
#![deny(unsafe_code)]

pub mod backend;
pub mod blocks;
pub mod convert;
mod environment;
pub mod family;
pub mod foreign_below;
pub mod handwritten;
pub mod layout;
mod lock;
pub mod reentrancy;
pub mod standard_below;
pub mod static_access;
mod status;
mod trampoline;

pub use family::{Family, Kind, Limit, StandardStatus, Word};
