//! cargo-fuzz target: calls `barrier_simulator::fuzz::arrivals` with bytes from the fuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| barrier_simulator::fuzz::arrivals(bytes));
