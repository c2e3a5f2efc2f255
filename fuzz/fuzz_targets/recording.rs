//! cargo-fuzz target: calls `mpi_engine::fuzz::recording` with bytes from the fuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mpi_engine::fuzz::recording(bytes));
