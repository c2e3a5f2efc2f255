//! Common code of the compatibility libraries, for programs of other MPI ABIs.
//!
//! A program compiled with another MPI's header runs on `libmpi_abi.so.1`.
//! The libraries are `libmpi.so.12` (MPICH, Intel MPI) and `libmpi.so.40` (Open MPI).
//! An exported function converts arguments and results of a call of the backend's function.
//! Most functions are generated at build time from tables (`compat/api`, `mpi-abi/api`).
//! Functions in `handwritten` use or keep arrays of handles, statuses, callbacks, or attributes.
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
