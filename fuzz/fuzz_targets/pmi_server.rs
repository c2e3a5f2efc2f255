//! cargo-fuzz target: calls `mpirun::fuzz::pmi_server` with bytes from the fuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mpirun::fuzz::pmi_server(bytes));
