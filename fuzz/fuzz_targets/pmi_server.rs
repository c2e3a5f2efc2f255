//! The cargo-fuzz target of `mpirun::fuzz::pmi_server`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mpirun::fuzz::pmi_server(bytes));
