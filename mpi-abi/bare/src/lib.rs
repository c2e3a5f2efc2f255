//! The file `libmpi_abi.so.1` without optional components: what `mpi-abi` exports, with nothing built in.
//!
//! A package of its own rather than `mpi-abi-library` with other features: cargo names the file of a shared library after its package alone,
//! so two variants of one package overwrite each other in a folder, and with other features everything below them is compiled twice.

#![deny(unsafe_code)]

use mpi_abi as _;
