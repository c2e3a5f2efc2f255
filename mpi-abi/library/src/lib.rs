//! The file `libmpi_abi.so.1`: all that `mpi-abi` exports, as a shared library.
//!
//! A package of its own, so that programs which need tables of `mpi-abi` do not wait for the library to be linked,
//! and so that cargo may optimise across crates, which it does not for a package that is a Rust library as well.

#![deny(unsafe_code)]

use mpi_abi as _;
