//! The cargo-fuzz target of `mpi_crs::fuzz::checkpoint_manifest`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mpi_crs::fuzz::checkpoint_manifest(bytes));
