//! cargo-fuzz target: calls `mpi_p2p::fuzz::call_for_help` with bytes from the fuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mpi_p2p::fuzz::call_for_help(bytes));
