//! The cargo-fuzz target of `mpirun::fuzz::rankfile`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mpirun::fuzz::rankfile(bytes));
