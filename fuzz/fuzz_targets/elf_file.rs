//! cargo-fuzz target: calls `mpirun::fuzz::elf_file` with bytes from the fuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mpirun::fuzz::elf_file(bytes));
