//! The cargo-fuzz target of `mpi_crs::fuzz::criu_open_files`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mpi_crs::fuzz::criu_open_files(bytes));
