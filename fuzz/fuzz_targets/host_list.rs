//! Random bytes for `mpirun::fuzz::host_list`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mpirun::fuzz::host_list(bytes));
