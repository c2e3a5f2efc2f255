//! cargo-fuzz target: calls `mpi_transport::fuzz::pmi_line` with bytes from the fuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mpi_transport::fuzz::pmi_line(bytes));
