//! The cargo-fuzz target of `mpi_transport::fuzz::fabric_offers`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mpi_transport::fuzz::fabric_offers(bytes));
