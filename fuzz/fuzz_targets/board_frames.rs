//! Random bytes for `sim::fuzz::board_frames`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sim::fuzz::board_frames(bytes));
