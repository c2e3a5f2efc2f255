//! cargo-fuzz target: calls `mpirun::fuzz::hostfile` with bytes from the fuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mpirun::fuzz::hostfile(bytes));
