//! The cargo-fuzz target of `mpi_base::fuzz::debug_page`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mpi_base::fuzz::debug_page(bytes));
