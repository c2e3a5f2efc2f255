//! cargo-fuzz target: calls `barrier_board::fuzz::board_frames` with bytes from the fuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| barrier_board::fuzz::board_frames(bytes));
