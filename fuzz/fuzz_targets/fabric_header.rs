//! cargo-fuzz target: calls `mpi_transport::fuzz::fabric_header` with bytes from the fuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mpi_transport::fuzz::fabric_header(bytes));
