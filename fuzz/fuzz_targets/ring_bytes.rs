//! The cargo-fuzz target of `barrier_driver::fuzz::ring_bytes`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| barrier_driver::fuzz::ring_bytes(bytes));
