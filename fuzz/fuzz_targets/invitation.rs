//! The cargo-fuzz target of `mpi_coll::fuzz::invitation`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mpi_coll::fuzz::invitation(bytes));
