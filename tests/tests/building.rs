//! Tests of building programs: with `mpicc`, `mpicxx`, `mpifort`, pkg-config and CMake's FindMPI.
//!
//! `building/fortran.rs` builds Fortran programs without `mpifort`.

#[path = "building/fortran.rs"]
mod fortran;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use tests::{Job, Outcome, installation, needs};
use xtask::packages::on_path;
use xtask::{process, workspace};

fn output(command: &mut Command) -> Outcome {
    process::output(command, Duration::from_secs(240)).unwrap_or_else(|e| panic!("{e}"))
}

fn runs(program: &Path) {
    Job::command(program)
        .under(&installation().join("bin/mpirun"))
        .ranks(2)
        .holds();
}

#[test]
fn cmakes_find_mpi_works_with_our_mpicc() {
    if !needs(on_path("cmake"), "cmake") || !needs(on_path("gfortran"), "gfortran") {
        return;
    }
    let build = tempfile::tempdir().unwrap();
    let source = workspace::root().join("tests/cmake");
    let mut configure = Command::new("cmake");
    configure.arg("-S").arg(source).arg("-B").arg(build.path());
    configure.arg(format!("-DPROGRAMS={}", workspace::programs().display()));
    // FindMPI gets only the compiler wrappers and must derive all other settings from them.
    for (language, wrapper) in [("C", "mpicc"), ("CXX", "mpicxx"), ("Fortran", "mpifort")] {
        let wrapper = installation().join("bin").join(wrapper);
        configure.arg(format!("-DMPI_{language}_COMPILER={}", wrapper.display()));
    }
    let told = output(&mut configure).stdout;
    assert!(told.contains("Found MPI"), "{told}");
    output(Command::new("cmake").arg("--build").arg(build.path()));
    runs(&build.path().join("hello"));
    runs(&build.path().join("objects"));
    runs(&build.path().join("greeting"));
}

#[test]
fn a_program_in_cpp_is_built_by_each_name() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("objects");
    for wrapper in ["mpicxx", "mpic++", "mpiCC"] {
        let mut command = Command::new(installation().join("bin").join(wrapper));
        command
            .args(["-std=c++11", "-Wall", "-Wextra", "-Werror", "-o"])
            .arg(&program)
            .arg(workspace::programs().join("objects.cc"));
        output(&mut command);
        runs(&program);
        let said = output(Command::new(command.get_program()).arg("--showme:version")).stdout;
        assert!(said.starts_with("mpicxx: Portcullis"), "{said}");
    }
}

#[test]
fn pkg_config_knows_the_flags() {
    if !needs(on_path("pkg-config"), "pkg-config") {
        return;
    }
    for (name, compiler, source) in [
        ("mpi", "gcc", "hello.c"),
        ("mpi-c", "gcc", "hello.c"),
        ("mpi-cxx", "g++", "objects.cc"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join(Path::new(source).file_stem().unwrap());
        let mut asked = Command::new("pkg-config");
        asked
            .args(["--cflags", "--libs", name])
            // Another library may have installed .pc files of the same names elsewhere.
            .env("PKG_CONFIG_LIBDIR", installation().join("lib/pkgconfig"));
        let flags = output(&mut asked).stdout;
        let mut build = Command::new(compiler);
        build
            .arg("-o")
            .arg(&program)
            .arg(workspace::programs().join(source))
            .args(flags.split_whitespace());
        output(&mut build);
        runs(&program);
    }
}

/// Tests a program that is built without `mpicc`, or with cargo, which drops `mpicc`'s run path.
#[test]
fn a_program_without_a_run_path_gets_the_library_of_its_mpirun() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("hello");
    let (include, lib) = (installation().join("include"), installation().join("lib"));
    for name in ["-lmpi_abi", "-lmpi"] {
        for run_path in ["", "-Wl,-rpath,/nowhere"] {
            let mut gcc = Command::new("gcc");
            gcc.arg("-o").arg(&program);
            gcc.arg(workspace::programs().join("hello.c"));
            gcc.arg("-I").arg(&include).arg("-L").arg(&lib).arg(name);
            gcc.args(Some(run_path).filter(|path| !path.is_empty()));
            output(&mut gcc);
            runs(&program);
        }
    }
    // A program that a script starts finds the library too.
    let script = format!("{}; exit $?", program.display());
    let said = Job::command(Path::new("/bin/sh"))
        .under(&installation().join("bin/mpirun"))
        .ranks(2)
        .arg("-c")
        .arg(script)
        .succeeds();
    assert!(
        said.stdout.contains("all claims of hello hold on 2 ranks"),
        "{}",
        said.stdout
    );
}

#[test]
fn a_program_needs_the_standard_library_and_nothing_else_of_ours() {
    let program = tests::compile("hello");
    let told = output(Command::new("readelf").arg("-d").arg(&program)).stdout;
    let needed: Vec<&str> = told
        .lines()
        .filter(|line| line.contains("(NEEDED)"))
        .filter_map(|line| line.split(['[', ']']).nth(1))
        .collect();
    assert!(needed.contains(&"libmpi_abi.so.1"), "{needed:?}");
    assert!(
        needed
            .iter()
            .all(|name| ["libmpi_abi.so.1", "libc.so.6", "libm.so.6"].contains(name)),
        "{needed:?}"
    );
}

#[test]
fn mpicc_shows_what_it_would_do() {
    let mpicc = installation().join("bin/mpicc");
    let show = output(Command::new(&mpicc).args(["-show", "x.c"])).stdout;
    assert!(show.contains("-lmpi_abi") && show.contains("x.c"), "{show}");
    for (option, part) in [("--showme:compile", "-I"), ("--showme:link", "-lmpi_abi")] {
        let told = output(Command::new(&mpicc).arg(option)).stdout;
        assert!(told.contains(part), "{option}: {told}");
    }
}

#[test]
fn the_wrappers_have_help_of_their_own_and_leave_the_compilers_to_it() {
    for (wrapper, variable, compiler) in
        [("mpicc", "MPICC_CC", "cc"), ("mpicxx", "MPICXX_CXX", "c++")]
    {
        let wrapper = installation().join("bin").join(wrapper);
        let told = |option: &str| output(Command::new(&wrapper).arg(option)).stdout;
        let help = told("-help");
        for part in ["--showme:compile", "--showme:link", "-link_info", variable] {
            assert!(help.contains(part), "no {part} in:\n{help}");
        }
        assert_eq!(told("--showme:help"), help);
        let compilers = output(Command::new(compiler).arg("--help")).stdout;
        assert_eq!(told("--help"), compilers);
    }
}
