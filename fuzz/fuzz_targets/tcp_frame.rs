//! The cargo-fuzz target of `mpi_transport::fuzz::tcp_frame`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mpi_transport::fuzz::tcp_frame(bytes));
