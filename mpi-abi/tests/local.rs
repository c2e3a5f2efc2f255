//! A C program that needs no other process: the functions that are local, and what a fatal error says.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn library_dir() -> PathBuf {
    let test = std::env::current_exe().expect("the path of this test");
    let dir = test
        .ancestors()
        .skip(1)
        .find(|dir| dir.join("libmpi_abi.so").exists());
    dir.expect("libmpi_abi.so beside this test").to_path_buf()
}

/// Compiles `local.c` and runs it with one argument.
fn run(argument: &str) -> Output {
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let dir = tempfile::tempdir().expect("a temporary folder");
    // The loader looks for the soname, which the build folder does not have.
    std::os::unix::fs::symlink(
        library_dir().join("libmpi_abi.so"),
        dir.path().join("libmpi_abi.so.1"),
    )
    .expect("a link");
    let binary = dir.path().join("local");
    let compiled = Command::new("gcc")
        .args(["-Wall", "-Wextra", "-Werror", "-o"])
        .args([&binary, &crate_dir.join("tests/local.c")])
        .arg("-I")
        .arg(crate_dir.join("include"))
        .arg(dir.path().join("libmpi_abi.so.1"))
        .output()
        .expect("a C compiler");
    assert!(
        compiled.status.success(),
        "{}",
        String::from_utf8_lossy(&compiled.stderr)
    );
    Command::new(binary)
        .arg(argument)
        .env("LD_LIBRARY_PATH", dir.path())
        .output()
        .expect("the program")
}

#[test]
fn local_functions_do_what_the_standard_says() {
    let output = run("all");
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn a_freed_handle_ends_the_program_with_one_clear_line() {
    let output = run("freed");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(text.contains("MPI_Type_commit"), "{text}");
    assert!(
        text.contains("is a datatype that has been freed (MPI_ERR_TYPE)"),
        "{text}"
    );
    assert_eq!(text.lines().count(), 1, "{text}");
}
