//! cargo-fuzz target: calls `mpi_transport::fuzz::tcp_stream` with bytes from the fuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mpi_transport::fuzz::tcp_stream(bytes));
