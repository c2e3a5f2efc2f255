//! The cargo-fuzz target of `mpi_osc::fuzz::window_runs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mpi_osc::fuzz::window_runs(bytes));
