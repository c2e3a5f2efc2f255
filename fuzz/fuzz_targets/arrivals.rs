//! Random bytes for `sim::fuzz::arrivals`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sim::fuzz::arrivals(bytes));
