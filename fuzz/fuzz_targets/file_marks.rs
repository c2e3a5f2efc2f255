//! cargo-fuzz target: calls `mpi_io::fuzz::file_marks` with bytes from the fuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mpi_io::fuzz::file_marks(bytes));
