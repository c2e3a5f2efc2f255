//! The cargo-fuzz target of `mpirun::fuzz::launch_frames`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mpirun::fuzz::launch_frames(bytes));
