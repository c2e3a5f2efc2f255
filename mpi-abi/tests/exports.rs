//! The library exports every function of the interface and its profiling twin, under the standard soname.

use std::path::PathBuf;
use std::process::Command;

/// The library that cargo built for this test.
fn library() -> PathBuf {
    let test = std::env::current_exe().expect("the path of this test");
    test.ancestors()
        .skip(1)
        .map(|dir| dir.join("libmpi_abi.so"))
        .find(|path| path.exists())
        .expect("libmpi_abi.so beside this test")
}

#[test]
fn every_function_and_its_profiling_twin_is_exported() {
    // SAFETY: the library of this crate; loading it runs no code of its own.
    let library = unsafe { libloading::Library::new(library()) }.expect("libmpi_abi.so loads");
    let mut missing = Vec::new();
    for function in mpi_abi::functions() {
        for name in [function.name.to_string(), format!("P{}", function.name)] {
            // SAFETY: the symbol is only looked up.
            if unsafe { library.get::<unsafe extern "C" fn()>(name.as_bytes()) }.is_err() {
                missing.push(name);
            }
        }
    }
    assert!(missing.is_empty(), "not exported: {missing:?}");
}

#[test]
fn the_library_has_the_standard_soname_and_needs_only_the_c_library() {
    let output = Command::new("readelf")
        .arg("-d")
        .arg(library())
        .output()
        .expect("readelf");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("soname: [libmpi_abi.so.1]"), "{text}");
    for line in text.lines().filter(|l| l.contains("(NEEDED)")) {
        let of_libc = [
            "libc.so",
            "libm.so",
            "libgcc_s.so",
            "ld-linux",
            "libpthread.so",
            "libdl.so",
        ];
        assert!(of_libc.iter().any(|l| line.contains(l)), "{line}");
    }
}
