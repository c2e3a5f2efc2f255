//! cargo-fuzz target: calls `mpirun::fuzz::launch_frames` with bytes from the fuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mpirun::fuzz::launch_frames(bytes));
