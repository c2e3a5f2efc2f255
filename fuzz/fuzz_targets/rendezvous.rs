//! cargo-fuzz target: calls `mpi_p2p::fuzz::rendezvous` with bytes from the fuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mpi_p2p::fuzz::rendezvous(bytes));
