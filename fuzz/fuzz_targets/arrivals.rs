//! The cargo-fuzz target of `barrier_simulator::fuzz::arrivals`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| barrier_simulator::fuzz::arrivals(bytes));
