//! The cargo-fuzz target of `mpi_io::fuzz::file_marks`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mpi_io::fuzz::file_marks(bytes));
