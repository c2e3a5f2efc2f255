//! cargo-fuzz target: calls `mpirun::fuzz::rankfile` with bytes from the fuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mpirun::fuzz::rankfile(bytes));
