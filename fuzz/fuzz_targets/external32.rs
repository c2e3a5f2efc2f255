//! cargo-fuzz target: calls `mpi_types::fuzz::external32` with bytes from the fuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mpi_types::fuzz::external32(bytes));
