//! Tests of MPI libraries that a program loads at run time,
//! and of mpirun's message about an unsupported library.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;
use tests::hosts::Hosts;
use tests::{Job, Started, installation};
use xtask::{process, workspace};

/// A folder with a program that uses no MPI library, and with empty libraries that have the names
/// of other MPI libraries.
struct Others {
    folder: TempDir,
}

impl Others {
    fn new() -> Others {
        let others = Others {
            folder: tempfile::tempdir().unwrap(),
        };
        let source = workspace::programs().join("opener.c");
        others.cc(&["-o", "opener", source.to_str().unwrap(), "-ldl"]);
        for name in ["libmpi.so.12", "libmpi.so.40"] {
            others.library(name, name);
        }
        others
    }

    fn cc(&self, arguments: &[&str]) {
        let mut cc = Command::new("cc");
        cc.current_dir(self.path()).args(arguments);
        process::output(&mut cc, Duration::from_secs(60)).unwrap_or_else(|e| panic!("{e}"));
    }

    /// Creates the library `file`, which is empty and has the soname `name`.
    fn library(&self, file: &str, name: &str) {
        let soname = format!("-Wl,-soname,{name}");
        self.cc(&["-shared", "-o", file, &soname, "-x", "c", "/dev/null"]);
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// Returns a job of two ranks that open a library; the folder comes first in the library path.
    fn open(&self, library: impl AsRef<Path>) -> Job {
        job(&self.file("opener"))
            .arg(library.as_ref())
            .env("LD_LIBRARY_PATH", self.path())
    }
}

fn job(program: &Path) -> Job {
    Job::command(program)
        .under(&installation().join("bin/mpirun"))
        .ranks(2)
}

/// Checks that both ranks belong to one job on the replacement for the library `family`.
#[track_caller]
fn is_served(job: Job, family: &str) {
    let said = job.succeeds().stdout;
    let line = format!(
        "one of 2 on {}/lib/portcullis/compat/{family}/",
        installation().display()
    );
    assert_eq!(said.matches(&line).count(), 2, "{said}");
}

#[test]
fn a_library_that_a_program_opens_by_name_is_ours_although_the_search_path_begins_with_another() {
    let others = Others::new();
    is_served(others.open("libmpi.so.40"), "openmpi");
    is_served(others.open("libmpi.so.12"), "mpich");
    for (name, family) in [("libmpi.so.40", "openmpi"), ("libmpi.so.12", "mpich")] {
        others.library("libmpi.so", name);
        is_served(others.open("libmpi.so"), family);
    }
}

/// The cases: libraries that modules of Python and R need, and start scripts such as R's.
#[test]
fn a_library_that_a_module_needs_is_ours_whatever_its_run_path_and_the_start_script_say() {
    let others = Others::new();
    let module = |name: &str, tags: &str| {
        let library = ["-Wl,--no-as-needed", "-L.", "-l:libmpi.so.40"];
        let path = ["-Wl,-rpath,$ORIGIN", tags];
        let begin = ["-shared", "-o", name, "-x", "c", "/dev/null"];
        others.cc(&[&begin[..], &library, &path].concat());
    };
    module("new.so", "-Wl,--enable-new-dtags");
    module("old.so", "-Wl,--disable-new-dtags");
    is_served(others.open(others.file("new.so")), "openmpi");
    // For interpreters, mpirun also redirects library searches in which LD_LIBRARY_PATH comes too late.
    let python = others.file("python3");
    bounded::copy_program(&others.file("opener"), &python).unwrap();
    let old = job(&python).arg(others.file("old.so"));
    is_served(old.env("LD_LIBRARY_PATH", others.path()), "openmpi");
    let script = format!(
        "#!/bin/sh\nLD_LIBRARY_PATH={0}:$LD_LIBRARY_PATH exec {0}/opener libmpi.so.40\n",
        others.path().display()
    );
    let start = others.file("R");
    bounded::write_program(&start, &script).unwrap();
    is_served(job(&start), "openmpi");
}

/// Starts a job whose rank 0 opens a library and waits for the end of its input.
fn waiting(job: Job) -> (Started, OwnedFd) {
    let (reader, writer) = std::io::pipe().unwrap();
    let started = job.stdin(File::from(OwnedFd::from(reader))).start();
    // Other ranks have no input, so they may end before rank 0 has opened the library.
    started.says("open on rank 0");
    (started, writer.into())
}

/// Closes the input of a waiting job; returns its exit status and its standard error.
#[track_caller]
fn ends((job, input): (Started, OwnedFd)) -> (Option<i32>, String) {
    drop(input);
    let outcome = job.wait();
    (outcome.status.code(), outcome.stderr)
}

#[track_caller]
fn is_told(job: Job, library: &Path) {
    let (status, said) = ends(waiting(job));
    assert_eq!(status, Some(1), "{said}");
    let told = format!("had loaded another MPI library, {}.", library.display());
    assert_eq!(said.matches(&told).count(), 1, "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn ranks_that_load_a_library_which_is_not_served_are_reported_with_its_file_and_the_job_fails() {
    let others = Others::new();
    let library = others.file("libmpi.so.40");
    is_told(others.open(&library).arg("wait"), &library);
    // The shell waits for the program as its child process.
    let script = format!(
        "{}/opener {} wait; exit 0",
        others.path().display(),
        library.display()
    );
    is_told(job(Path::new("/bin/sh")).arg("-c").arg(script), &library);
    let alone = waiting(others.open(&library).arg("wait").ranks(1));
    assert_eq!(ends(alone), (Some(0), String::new()));
}

#[test]
fn a_library_that_is_not_served_is_reported_of_another_host_too() {
    let Some(hosts) = Hosts::new(2) else { return };
    let hosts = hosts.network(0, &[1500]);
    let others = Others::new();
    let library = others.file("libmpi.so.40");
    let job = hosts.remote_job(&others.file("opener"), 1);
    is_told(job.arg(&library).arg("wait"), &library);
}

#[test]
fn programs_without_mpi_and_those_that_load_our_library_unused_end_silently() {
    let plain = job(Path::new("/bin/echo")).arg("hello").succeeds();
    assert_eq!(
        (plain.stdout.as_str(), plain.stderr.as_str()),
        ("hello\nhello\n", "")
    );
    let others = Others::new();
    let unused = waiting(others.open("libmpi.so.40").arg("wait"));
    assert_eq!(ends(unused), (Some(0), String::new()));
}
