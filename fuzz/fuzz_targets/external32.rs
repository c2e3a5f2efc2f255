//! The cargo-fuzz target of `mpi_types::fuzz::external32`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mpi_types::fuzz::external32(bytes));
