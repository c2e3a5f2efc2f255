//! Tests of `mpicc`, which must find its installation, with a real compiler.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

/// Creates an installation with this build's `mpicc` and a library of one function.
fn installation() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let at = |path: &str| dir.path().join(path);
    for folder in ["bin", "include", "lib"] {
        std::fs::create_dir(at(folder)).unwrap();
    }
    let built = Path::new(env!("CARGO_BIN_EXE_mpicc"));
    bounded::copy_program(built, &at("bin/mpicc")).unwrap();
    std::fs::write(at("include/mpi.h"), "int MPI_Small(void);\n").unwrap();
    std::fs::write(at("small.c"), "int MPI_Small(void) { return 7; }\n").unwrap();
    run(Command::new("cc")
        .args(["-shared", "-fPIC", "-Wl,-soname,libmpi_abi.so.1", "-o"])
        .arg(at("lib/libmpi_abi.so.1"))
        .arg(at("small.c")));
    symlink("libmpi_abi.so.1", at("lib/libmpi_abi.so")).unwrap();
    dir
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn compile(prefix: &Path) -> Command {
    let mut command = Command::new(prefix.join("bin/mpicc"));
    command.env_remove("MPICC_CC");
    command
}

#[test]
fn a_program_is_compiled_linked_and_finds_its_library() {
    let dir = installation();
    let (source, program) = (dir.path().join("main.c"), dir.path().join("main"));
    std::fs::write(
        &source,
        "#include <mpi.h>\nint main(void) { return MPI_Small(); }\n",
    )
    .unwrap();
    run(compile(dir.path()).arg("-o").arg(&program).arg(&source));
    let status = Command::new(&program)
        .env_remove("LD_LIBRARY_PATH")
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(7));
}

#[test]
fn an_installation_may_be_moved() {
    let dir = installation();
    let before = run(compile(dir.path()).arg("-show"));
    assert!(before.contains(dir.path().to_str().unwrap()));
    let elsewhere = tempfile::tempdir().unwrap();
    let moved = elsewhere.path().join("moved");
    std::fs::rename(dir.path(), &moved).unwrap();
    let after = run(compile(&moved).arg("-show"));
    assert_eq!(
        after,
        before.replace(dir.path().to_str().unwrap(), moved.to_str().unwrap())
    );
}

#[test]
fn the_environment_names_the_compiler_and_its_failure_is_passed_on() {
    let dir = installation();
    let shown = run(compile(dir.path()).env("MPICC_CC", "gcc -m64").arg("-show"));
    assert!(shown.starts_with("gcc -m64 -I"), "{shown}");
    let missing = compile(dir.path())
        .env("MPICC_CC", "no-such-cc")
        .arg("x.c")
        .output()
        .unwrap();
    assert_eq!(missing.status.code(), Some(127));
    let bad = compile(dir.path()).arg("no-such-file.c").output().unwrap();
    assert!(!bad.status.success());
}
