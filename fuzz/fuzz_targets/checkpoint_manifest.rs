//! cargo-fuzz target: calls `mpi_crs::fuzz::checkpoint_manifest` with bytes from the fuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mpi_crs::fuzz::checkpoint_manifest(bytes));
