//! cargo-fuzz target: calls `mpi_base::fuzz::plugin_manifest` with bytes from the fuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mpi_base::fuzz::plugin_manifest(bytes));
