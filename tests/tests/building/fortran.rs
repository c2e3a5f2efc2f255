//! Tests of building Fortran programs without calling `mpifort`.
//!
//! The tools are FindMPI without components, pkg-config, meson, and autoconf's macros.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tests::{Job, installation, needs};
use xtask::packages::on_path;
use xtask::workspace;

use super::output;

/// Runs a program on two ranks under the installation's `mpirun`; panics unless it succeeds.
fn runs(program: &Path) {
    Job::command(program)
        .under(&installation().join("bin/mpirun"))
        .ranks(2)
        .succeeds();
}

/// Returns the environment's `PATH` with the installation's programs first.
fn our_path() -> OsString {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let ours = std::iter::once(installation().join("bin"));
    std::env::join_paths(ours.chain(std::env::split_paths(&path))).unwrap_or(path)
}

/// Returns the absolute path of a file below `tests`.
fn of_tests(path: &str) -> PathBuf {
    workspace::root().join("tests").join(path)
}

#[test]
fn cmake_configures_a_project_in_c_and_fortran_that_names_no_components() {
    if !needs(
        on_path("cmake") && on_path("gfortran"),
        "cmake and gfortran",
    ) {
        return;
    }
    let build = tempfile::tempdir().unwrap();
    let mut configure = Command::new("cmake");
    configure
        .arg("-S")
        .arg(of_tests("cmake/plain"))
        .arg("-B")
        .arg(build.path())
        .arg(format!("-DPROGRAMS={}", workspace::programs().display()))
        // CMake finds the compiler wrappers in this search path.
        .env("PATH", our_path());
    let told = output(&mut configure).stdout;
    assert!(told.contains("Found MPI_Fortran"), "{told}");
    output(Command::new("cmake").arg("--build").arg(build.path()));
    for program in ["hello", "messages1", "messages2", "messages3"] {
        runs(&build.path().join(program));
    }
}

#[test]
fn pkg_config_has_the_flags_of_a_program_that_includes_mpif_h() {
    if !needs(
        on_path("pkg-config") && on_path("gfortran"),
        "pkg-config and gfortran",
    ) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("fixed");
    let mut asked = Command::new("pkg-config");
    asked
        .args(["--cflags", "--libs", "mpi-fort"])
        .env("PKG_CONFIG_LIBDIR", installation().join("lib/pkgconfig"));
    let flags = output(&mut asked).stdout;
    let mut build = Command::new("gfortran");
    build
        .args(["-w", "-fallow-argument-mismatch", "-o"])
        .arg(&program)
        .arg(workspace::programs().join("fortran/fixed.f"))
        .args(flags.split_whitespace());
    output(&mut build);
    runs(&program);
}

#[test]
fn the_macros_of_autoconf_find_everything_in_the_wrapper() {
    if !needs(
        on_path("autoconf") && on_path("gfortran"),
        "autoconf and gfortran",
    ) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let copied = folder.path().join("configure.ac");
    fs::copy(of_tests("autotools/configure.ac"), &copied).unwrap();
    output(Command::new("autoconf").current_dir(folder.path()));
    let mut configure = Command::new("./configure");
    configure.current_dir(folder.path()).env("PATH", our_path());
    let told = output(&mut configure).stdout;
    for line in [
        "checking for mpif.h... yes",
        "checking for module mpi... yes",
        "checking for module mpi_f08... yes",
    ] {
        assert!(told.contains(line), "{told}");
    }
}

/// `cargo xtask test` does not install meson, so a missing meson is no failure.
#[test]
fn meson_finds_mpi_in_both_languages() {
    if !on_path("meson") || !on_path("ninja") || !on_path("gfortran") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source");
    fs::create_dir(&source).unwrap();
    let inputs = [
        of_tests("meson/meson.build"),
        workspace::programs().join("hello.c"),
        workspace::programs().join("check.h"),
        workspace::programs().join("fortran/sections.f90"),
        workspace::programs().join("fortran/check.inc"),
    ];
    for input in inputs {
        let name = input.file_name().unwrap_or_default();
        fs::copy(&input, source.join(name)).unwrap();
    }
    let build = folder.path().join("build");
    let mut setup = Command::new("meson");
    setup.arg("setup").arg(&build).arg(&source);
    output(setup.env("PATH", our_path()));
    output(Command::new("ninja").arg("-C").arg(&build));
    runs(&build.join("hello"));
    runs(&build.join("sections"));
}
