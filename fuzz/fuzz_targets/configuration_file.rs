//! The cargo-fuzz target of `mpirun::fuzz::configuration_file`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mpirun::fuzz::configuration_file(bytes));
