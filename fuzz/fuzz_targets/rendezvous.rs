//! The cargo-fuzz target of `mpi_p2p::fuzz::rendezvous`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mpi_p2p::fuzz::rendezvous(bytes));
