//! The cargo-fuzz target of `mpi_engine::fuzz::introduction`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mpi_engine::fuzz::introduction(bytes));
