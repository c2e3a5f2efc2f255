//! The cargo-fuzz target of `mpirun::fuzz::hostfile`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mpirun::fuzz::hostfile(bytes));
