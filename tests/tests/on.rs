//! Tests of programs that are compiled with the standard's header and run on other libraries with `mpirun --on`.
//!
//! The libraries are MPICH, Open MPI 5 and Debian's Open MPI 4.1.
//! Each program checks its own results,
//! so a wrong constant, handle, status or callback fails a test.
//! Programs that fail natively on these libraries are excluded; docs/compat.md lists the reasons.

use std::path::{Path, PathBuf};
use tests::peers::Program;
use tests::{Job, compile, compile_cpp, installation, mpich, needs, open_mpi};

fn job(name: &str, library: &Path) -> Job {
    job_of(&compile(name), library)
}

fn job_of(program: &Path, library: &Path) -> Job {
    Job::command(program)
        .under(&installation().join("bin/mpirun"))
        .with(["--on"])
        .with([library])
}

/// Numbers of ranks in the short form of the tests:
/// at most the number of cores, because the libraries busy-wait.
const TWO: &[u32] = &[2];
/// Additional numbers of ranks in the long form of the tests.
const OTHERS: &[u32] = &[1, 3];

/// Runs each program with its argument; reports all failures, not only the first.
fn hold(library: &Path, programs: &[(&str, &str)], on: &[u32]) {
    let mut failed = Vec::new();
    for (name, argument) in programs {
        for &ranks in on {
            let job = job(name, library).ranks(ranks);
            let job = match *argument {
                "" => job,
                argument => job.arg(argument),
            };
            let outcome = job.run();
            if !outcome.status.success() {
                failed.push(format!("{name} on {ranks} ranks:\n{}", outcome.stderr));
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// Programs whose functions all libraries implement.
const ALL: &[(&str, &str)] = &[
    ("hello", ""),
    ("sendrecv", ""),
    ("wildcard", ""),
    ("probe", ""),
    ("requests", ""),
    ("collectives", "100"),
    ("operators", ""),
    ("port_names", ""),
    ("threads", ""),
];

/// Additional programs that pass on MPICH.
const MPICH: &[(&str, &str)] = &[("topologies", ""), ("communicators", "")];

/// Programs with functions that Debian's Open MPI lacks and that this library builds from others.
const MADE_OF_OTHERS: &[(&str, &str)] = &[("sessions", ""), ("partitioned", "")];

fn on_mpich(ranks: &[u32]) {
    let Some(mpich) = mpich() else { return };
    let library = mpich.lib().join("libmpi.so.12");
    hold(&library, &[ALL, MPICH].concat(), ranks);
}

fn on_open_mpi(ranks: &[u32]) {
    let Some(open_mpi) = open_mpi() else { return };
    hold(&open_mpi.lib().join("libmpi.so.40"), ALL, ranks);
}

fn debians_open_mpi() -> Option<PathBuf> {
    let folder = PathBuf::from(format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH));
    let library = folder.join("libmpi.so.40");
    needs(library.is_file(), "Debian's Open MPI (openmpi-bin)").then_some(library)
}

fn on_debians_open_mpi(ranks: &[u32]) {
    if let Some(library) = debians_open_mpi() {
        hold(&library, &[ALL, MADE_OF_OTHERS].concat(), ranks);
    }
}

/// Open MPI 4.1 lacks partitioned operations, so they are emulated by point-to-point requests.
#[test]
fn a_request_that_is_made_of_others_and_cannot_be_cancelled_is_refused() {
    let Some(library) = debians_open_mpi() else {
        return;
    };
    let outcome = job("cancels", &library).ranks(2).succeeds();
    let told = "portcullis: MPI_Cancel: the request is of a partitioned send or receive, which cannot be cancelled; \
                only nonblocking and persistent sends and receives can, so complete it by MPI_Wait";
    assert!(outcome.stderr.contains(told), "{}", outcome.stderr);
}

/// The program also passes if it is compiled for the other library itself.
#[test]
fn an_exception_of_a_callback_passes_through_to_the_program_as_it_does_natively() {
    let program = compile_cpp("thrown_on");
    let libraries = [
        mpich().map(|mpich| mpich.lib().join("libmpi.so.12")),
        open_mpi().map(|open_mpi| open_mpi.lib().join("libmpi.so.40")),
        debians_open_mpi(),
    ];
    for library in libraries.into_iter().flatten() {
        job_of(&program, &library).ranks(2).holds();
    }
}

#[test]
fn programs_of_the_standard_run_on_mpich() {
    on_mpich(TWO);
}

#[test]
fn programs_of_the_standard_run_on_open_mpi() {
    on_open_mpi(TWO);
}

#[test]
fn programs_of_the_standard_run_on_debians_open_mpi() {
    on_debians_open_mpi(TWO);
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn programs_of_the_standard_run_on_other_libraries_on_one_rank_and_on_three() {
    on_mpich(OTHERS);
    on_open_mpi(OTHERS);
    on_debians_open_mpi(OTHERS);
}

#[test]
fn open_mpi_revokes_and_shrinks_communicators_by_the_names_of_its_extension() {
    let Some(open_mpi) = open_mpi() else { return };
    job("revoking", &open_mpi.lib().join("libmpi.so.40"))
        .ranks(2)
        .with(["--with-ft", "ulfm"])
        .succeeds();
}

#[test]
fn an_extension_that_a_library_lacks_is_refused_by_its_name() {
    let Some(library) = debians_open_mpi() else {
        return;
    };
    let outcome = job("revoking", &library).ranks(2).succeeds();
    let told = "MPIX_Comm_revoke: the Open MPI below has no such function";
    assert!(outcome.stderr.contains(told), "{}", outcome.stderr);
}

#[test]
fn a_library_of_the_standard_abi_is_taken_as_it_is() {
    let Some(mpich) = mpich() else { return };
    let library = mpich.lib().join("libmpi_abi.so.1");
    let outcome = job("requests", &library)
        .ranks(2)
        .with(["--explain"])
        .succeeds();
    let told = format!(
        "runs on {} of the standard ABI",
        library.canonicalize().unwrap().display()
    );
    assert!(outcome.stderr.contains(&told), "{}", outcome.stderr);
    assert!(!outcome.stderr.contains("draft"), "{}", outcome.stderr);
}

/// The cases: the library is named by `--on`, or found by the loader.
#[test]
fn a_library_with_constants_of_a_draft_is_reported_by_one_rank() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("libmpi_abi.so.1");
    let options = ["-shared", "-fPIC", "-w", "-Wl,-soname,libmpi_abi.so.1"];
    let built = Program::with(Path::new("gcc"), "draft_abi.c", &options);
    std::fs::copy(built.path(), &library).unwrap();
    let found = Job::command(&compile("begun"))
        .under(&installation().join("bin/mpirun"))
        .env("LD_LIBRARY_PATH", folder.path());
    for job in [job("begun", &library), found] {
        let outcome = job.ranks(1).succeeds();
        let told = format!(
            "portcullis: {} (Draft MPI 0.9) has constants of a draft of the standard ABI: its MPI_ERRORS_RETURN is 0x142",
            library.display()
        );
        assert!(outcome.stderr.contains(&told), "{}", outcome.stderr);
        assert_eq!(outcome.stderr.matches("draft").count(), 1);
    }
}

#[test]
fn explain_says_which_library_a_program_runs_on() {
    let Some(mpich) = mpich() else { return };
    let library = mpich.lib().join("libmpi.so.12");
    let outcome = job("hello", &library)
        .ranks(1)
        .with(["--explain"])
        .succeeds();
    assert!(
        outcome.stderr.contains("of MPICH, through"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn a_library_that_is_none_is_refused_with_its_name() {
    let outcome = job("hello", &compile("hello")).ranks(1).run();
    assert!(!outcome.status.success());
    assert!(
        outcome
            .stderr
            .contains("no library of MPICH, Intel MPI or Open MPI"),
        "{}",
        outcome.stderr
    );
}
