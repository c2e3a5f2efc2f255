//! Tests of the shared library: its symbols, its name, its dependencies, and its use by a C program without a launcher.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use tests::{compile, installation};
use xtask::process;

const LIMIT: Duration = Duration::from_secs(60);

fn library() -> PathBuf {
    installation().join("lib/libmpi_abi.so.1")
}

/// Runs a binutils program, such as `nm`, on the library and returns its output.
fn said_by(program: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(program);
    command.args(arguments).arg(library());
    let said = process::output(&mut command, LIMIT).unwrap_or_else(|e| panic!("{e}"));
    said.stdout
}

#[test]
fn every_function_and_its_profiling_twin_is_exported() {
    let symbols = said_by("nm", &["-D", "--defined-only", "--format=posix"]);
    let exported: BTreeSet<&str> = symbols
        .lines()
        .filter_map(|line| line.split(' ').next())
        .collect();
    let missing: Vec<String> = mpi_abi::functions()
        .iter()
        .chain(mpi_abi::extensions())
        .flat_map(|function| [function.name.to_string(), format!("P{}", function.name)])
        .filter(|name| !exported.contains(name.as_str()))
        .collect();
    assert!(missing.is_empty(), "not exported: {missing:?}");
}

#[test]
fn the_library_has_the_standard_soname_and_needs_only_the_c_library() {
    let text = said_by("readelf", &["-d"]);
    assert!(text.contains("soname: [libmpi_abi.so.1]"), "{text}");
    for line in text.lines().filter(|line| line.contains("(NEEDED)")) {
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

/// Runs `local.c` without a launcher; the program needs no other process.
fn local(part: &str) -> std::process::Output {
    Command::new(compile("local"))
        .arg(part)
        .output()
        .unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn local_functions_do_what_the_standard_says() {
    let output = local("all");
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn a_freed_handle_ends_the_program_with_one_clear_line() {
    let output = local("freed");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(text.contains("MPI_Type_commit"), "{text}");
    assert!(
        text.contains("is a datatype that has been freed (MPI_ERR_TYPE)"),
        "{text}"
    );
    assert_eq!(text.lines().count(), 1, "{text}");
}
