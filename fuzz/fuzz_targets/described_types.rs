//! The cargo-fuzz target of `mpi_p2p::fuzz::described_types`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mpi_p2p::fuzz::described_types(bytes));
