//! The cargo-fuzz target of `mpirun::fuzz::elf_file`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mpirun::fuzz::elf_file(bytes));
