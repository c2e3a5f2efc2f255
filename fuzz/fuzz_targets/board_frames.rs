//! The cargo-fuzz target of `barrier_board::fuzz::board_frames`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| barrier_board::fuzz::board_frames(bytes));
