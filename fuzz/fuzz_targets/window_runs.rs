//! cargo-fuzz target: calls `mpi_osc::fuzz::window_runs` with bytes from the fuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mpi_osc::fuzz::window_runs(bytes));
