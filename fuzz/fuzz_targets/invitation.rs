//! cargo-fuzz target: calls `mpi_coll::fuzz::invitation` with bytes from the fuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mpi_coll::fuzz::invitation(bytes));
