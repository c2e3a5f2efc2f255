//! Tests of programs that MPICH's and Open MPI's compilers have compiled, on this library under its mpirun.
//!
//! The sources are the C programs of the other tests, so the same results are checked with the
//! constants, handles, statuses and functions of the other ABIs.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;
use tests::{Job, compile_with, installation, mpich, needs, open_mpi};
use xtask::{process, workspace};

/// Compiles a C program with another library's compiler; dropping the folder removes the program.
fn compile(compiler: &Path, name: &str) -> (TempDir, PathBuf) {
    compile_as(compiler, &format!("{name}.c"), &["-std=gnu11"], &["-lm"])
}

/// Compiles a C++ program without MPI's C++ bindings, which MPI 3.0 removed.
fn compile_cpp(compiler: &Path, name: &str) -> (TempDir, PathBuf) {
    let options = ["-x", "c++", "-DMPICH_SKIP_MPICXX", "-DOMPI_SKIP_MPICXX"];
    compile_as(compiler, &format!("{name}.cc"), &options, &["-lstdc++"])
}

fn compile_as(compiler: &Path, file: &str, options: &[&str], link: &[&str]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join(file).with_extension("");
    let mut command = Command::new(compiler);
    command
        .args(["-O0", "-w", "-o"])
        .arg(&program)
        .args(options)
        .arg(workspace::programs().join(file))
        .args(link);
    process::output(&mut command, Duration::from_secs(60)).unwrap_or_else(|e| panic!("{e}"));
    (folder, program)
}

fn job(program: &Path) -> Job {
    Job::command(program).under(&installation().join("bin/mpirun"))
}

/// Runs each program with its argument on each of the numbers of ranks.
fn hold(compiler: &Path, programs: &[(&str, &str)], on: &[u32]) {
    for (name, argument) in programs {
        let (_folder, program) = compile(compiler, name);
        for &ranks in on {
            let job = job(&program).ranks(ranks);
            let job = match *argument {
                "" => job,
                argument => job.arg(argument),
            };
            job.succeeds();
        }
    }
}

/// Programs, with arguments, whose functions both libraries' headers declare.
const BOTH: &[(&str, &str)] = &[
    ("hello", ""),
    ("sendrecv", ""),
    ("wildcard", ""),
    ("probe", ""),
    ("taken_back", ""),
    ("requests", ""),
    ("collectives", "100"),
    ("any_order", ""),
    ("operators", ""),
    ("hints", ""),
    ("port_names", ""),
    ("partitioned", ""),
    ("intercommunicators", ""),
    ("topologies", ""),
    ("threads", ""),
    ("errors", ""),
    ("accesses", ""),
    ("window_reports", ""),
    ("files", ""),
    ("file_accesses", "20"),
    ("removed_types", ""),
    ("revoking", ""),
];

/// Programs that call functions of MPI 4.0 and later, which Open MPI 5.0's header lacks.
const NEWER: &[(&str, &str)] = &[
    ("aliased", ""),
    ("cancels", ""),
    ("communicators", ""),
    ("datatypes", ""),
    ("lives", ""),
    ("neighbors", ""),
    ("sessions", ""),
    ("windows", ""),
];

fn of_mpich(ranks: &[u32]) {
    let Some(mpich) = mpich() else { return };
    hold(&mpich.bin("mpicc"), &[BOTH, NEWER].concat(), ranks);
}

fn of_open_mpi(ranks: &[u32]) {
    let Some(open_mpi) = open_mpi() else { return };
    hold(&open_mpi.bin("mpicc"), BOTH, ranks);
}

#[test]
fn programs_of_mpich_run_unchanged() {
    of_mpich(&[2]);
}

#[test]
fn programs_of_open_mpi_run_unchanged() {
    of_open_mpi(&[2]);
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn programs_of_other_libraries_run_unchanged_on_one_rank_and_on_three() {
    of_mpich(&[1, 3]);
    of_open_mpi(&[1, 3]);
}

/// If a callback throws an exception, the call that invoked it completes and returns its results, as with the standard ABI.
#[test]
fn an_exception_of_a_callback_is_caught_by_a_program_of_another_library() {
    let compilers = [
        mpich().map(|mpich| mpich.bin("mpicc")),
        open_mpi().map(|open_mpi| open_mpi.bin("mpicc")),
    ];
    for compiler in compilers.into_iter().flatten() {
        let (_folder, program) = compile_cpp(&compiler, "thrown");
        job(&program).ranks(1).holds();
        job(&program).ranks(2).holds();
        job(&program).ranks(2).arg("threads").holds();
    }
}

/// Tests buffers in device memory, and the query for device memory, in the other ABIs.
#[test]
fn programs_of_other_libraries_pass_device_memory() {
    let options = ["-shared", "-fPIC", "-Wl,-soname,libcuda.so.1"];
    let cuda = compile_with("fake_cuda", "libcuda.so.1", &options);
    let compilers = [
        mpich().map(|venv| venv.bin("mpicc")),
        open_mpi().map(|venv| venv.bin("mpicc")),
    ];
    for compiler in compilers.into_iter().flatten() {
        let options = ["-std=gnu11", "-DOTHER_LIBRARY"];
        let (_folder, program) = compile_as(&compiler, "devices.c", &options, &["-lm"]);
        job(&program).ranks(2).arg(&cuda).arg("late").succeeds();
    }
}

#[test]
fn explain_names_the_library_that_replaces_another() {
    let Some(open_mpi) = open_mpi() else { return };
    let (_folder, program) = compile(&open_mpi.bin("mpicc"), "hello");
    let outcome = job(&program).ranks(2).with(["--explain"]).succeeds();
    let file = installation().join("lib/portcullis/compat/openmpi/libmpi.so.40");
    let expected = format!("{} replaces it", file.display());
    assert!(outcome.stderr.contains(&expected), "{}", outcome.stderr);
    let quiet = job(&program).ranks(2).succeeds();
    assert!(!quiet.stderr.contains("stands in"), "{}", quiet.stderr);
}

/// The dynamic linker requires every name that a program refers to, even if it is never used.
#[test]
fn the_stand_ins_have_what_the_headers_of_both_families_name() {
    if let Some(mpich) = mpich() {
        has_names_of(&mpich.path(), "libmpi.so.12", "mpich");
    }
    if let Some(open_mpi) = open_mpi() {
        has_names_of(&open_mpi.path(), "libmpi.so.40", "openmpi");
    }
}

/// Checks that the replacement exports every name of a library that the library's headers contain.
fn has_names_of(prefix: &Path, library: &str, family: &str) {
    let theirs = exported(&prefix.join("lib").join(library));
    let stand_in = installation().join("lib/portcullis/compat").join(family);
    let ours = exported(&stand_in.join(library));
    let mut named = BTreeSet::new();
    names_in(&prefix.join("include"), &mut named);
    let wanted: Vec<&String> = named.intersection(&theirs).collect();
    assert!(
        wanted.len() > 1000,
        "only {} names in {}",
        wanted.len(),
        prefix.display()
    );
    let missing: Vec<&&String> = wanted
        .iter()
        .filter(|name| !ours.contains(**name))
        .collect();
    assert!(missing.is_empty(), "{family}: {missing:?}");
}

/// Returns the names that a library exports.
fn exported(library: &Path) -> BTreeSet<String> {
    let mut nm = Command::new("nm");
    nm.args(["--dynamic", "--defined-only", "--format=posix"])
        .arg(library);
    let said = process::output(&mut nm, Duration::from_secs(60)).unwrap_or_else(|e| panic!("{e}"));
    let names = said
        .stdout
        .lines()
        .filter_map(|line| line.split([' ', '@']).next());
    names.map(str::to_owned).collect()
}

/// Collects words that look like MPI function names from the headers below a folder.
fn names_in(folder: &Path, named: &mut BTreeSet<String>) {
    let is_of_names = |c: char| c.is_ascii_alphanumeric() || c == '_';
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            names_in(&path, named);
        } else if path.extension().is_some_and(|extension| extension == "h") {
            let text = std::fs::read_to_string(&path).unwrap();
            let words = text.split(|c| !is_of_names(c));
            let begins = ["MPI_", "PMPI_", "MPIX_", "PMPIX_", "ompi_mpi_"];
            // Names in capitals are skipped: a constant may have the name of a Fortran function.
            let of_mpi = words.filter(|word| {
                begins.iter().any(|begin| word.starts_with(begin))
                    && word.chars().any(|c| c.is_ascii_lowercase())
            });
            named.extend(of_mpi.map(str::to_owned));
        }
    }
}

/// Open MPI's Fortran libraries call its C library; here they call the replacement for that library.
#[test]
fn programs_in_fortran_of_open_mpi_run() {
    let compiler = Path::new("mpif90.openmpi");
    if needs(runs(compiler), "mpif90.openmpi (Debian: libopenmpi-dev)") {
        fortran_programs_of(compiler);
    }
}

/// Runs MPICH's Fortran library with the replacement for MPICH's C library.
/// The test is skipped without MPICH's Fortran compiler: few machines have both Open MPI's and MPICH's.
#[test]
fn programs_in_fortran_of_mpich_run() {
    let compiler = Path::new("mpif90.mpich");
    if runs(compiler) {
        fortran_programs_of(compiler);
    } else {
        let _ = writeln!(
            std::io::stderr().lock(),
            "skipped: programs_in_fortran_of_mpich_run needs mpif90.mpich (Debian: libmpich-dev)"
        );
    }
}

fn runs(compiler: &Path) -> bool {
    let mut command = Command::new(compiler);
    process::output(command.arg("--version"), Duration::from_secs(20)).is_ok()
}

/// Compiles the Fortran programs by this wrapper and runs them.
fn fortran_programs_of(compiler: &Path) {
    for name in ["fortran_calls", "fortran_2008"] {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join(name);
        let source = workspace::programs().join(name).with_extension("f90");
        let mut command = Command::new(compiler);
        command.args(["-O1", "-o"]).arg(&program).arg(source);
        command.current_dir(folder.path());
        process::output(&mut command, Duration::from_secs(60)).unwrap_or_else(|e| panic!("{e}"));
        for ranks in [1, 2, 4] {
            let job = job(&program).arg(folder.path().join("file")).ranks(ranks);
            let outcome = job.succeeds();
            let line = format!("all claims of {name} hold on {ranks} ranks");
            assert!(outcome.stdout.contains(&line), "{}", outcome.stderr);
        }
    }
}
