//! cargo-fuzz target: calls `barrier_driver::fuzz::port_description` with bytes from the fuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| barrier_driver::fuzz::port_description(bytes));
