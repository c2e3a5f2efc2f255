//! The cargo-fuzz target of `mpi_engine::fuzz::agreement`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mpi_engine::fuzz::agreement(bytes));
