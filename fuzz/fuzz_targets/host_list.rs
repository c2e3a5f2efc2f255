//! The cargo-fuzz target of `mpirun::fuzz::host_list`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mpirun::fuzz::host_list(bytes));
