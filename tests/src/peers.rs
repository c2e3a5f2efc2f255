//! Programs of other MPI libraries under their own launchers: Debian's Open MPI, and MPICH's wheel.

use crate::{installation, mpich, needs};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use xtask::process::{self, Outcome, Running};
use xtask::{packages, workspace};

/// The time limit of every job.
pub const LIMIT: Duration = Duration::from_secs(120);

/// Name and value of an environment variable that the launcher passes to the ranks.
pub type Setting<'a> = (&'a str, &'a str);

/// A program linked with another library, in a separate folder.
#[derive(Debug)]
pub struct Program {
    folder: tempfile::TempDir,
}

impl Program {
    /// Compiles a C or Fortran source file.
    pub fn new(compiler: &Path, file: &str) -> Program {
        Program::with(compiler, file, &[])
    }

    /// As `new`, with additional compiler options.
    pub fn with(compiler: &Path, file: &str, options: &[&str]) -> Program {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(compiler);
        if file.ends_with(".c") {
            command.args(["-std=gnu11", "-w"]);
        }
        command
            .args(["-O1", "-o"])
            .arg(folder.path().join("program"))
            .arg(workspace::programs().join(file))
            .args(options);
        process::output(&mut command, LIMIT).unwrap_or_else(|e| panic!("{e}"));
        Program { folder }
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("program")
    }
}

/// Returns true if Debian's Open MPI and its compiler are installed.
pub fn debian_open_mpi() -> bool {
    let there = ["mpirun.openmpi", "mpicc.openmpi"]
        .into_iter()
        .all(packages::on_path);
    needs(there, "Debian's Open MPI (openmpi-bin, libopenmpi-dev)")
}

/// Another MPI library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    OpenMpi,
    Mpich,
}

impl Peer {
    /// Returns the libraries that are installed.
    pub fn all() -> Vec<Peer> {
        let open_mpi = debian_open_mpi().then_some(Peer::OpenMpi);
        let mpich = mpich().map(|_| Peer::Mpich);
        open_mpi.into_iter().chain(mpich).collect()
    }

    pub fn compiler(self) -> PathBuf {
        match self {
            Peer::OpenMpi => "mpicc.openmpi".into(),
            Peer::Mpich => mpich().expect("it is there").bin("mpicc"),
        }
    }

    /// Returns the command that launches a program; there may be more ranks than cores.
    pub fn launch(self, program: &Path, ranks: u32, settings: &[Setting]) -> Command {
        let mut command = match self {
            Peer::OpenMpi => Command::new("mpirun.openmpi"),
            Peer::Mpich => Command::new(mpich().expect("it is there").bin("mpiexec")),
        };
        if self == Peer::OpenMpi {
            command.args(["--allow-run-as-root", "--oversubscribe"]);
        }
        command.args(["-n", &ranks.to_string()]);
        for (name, value) in settings {
            match self {
                Peer::OpenMpi => command.arg("-x").arg(format!("{name}={value}")),
                Peer::Mpich => command.args(["-genv", name, value]),
            };
        }
        command.arg(program).stdin(process::silence());
        command
    }
}

/// Returns the path of `libportcullis-preload.so`, for LD_PRELOAD.
pub fn preload() -> String {
    let file = installation().join("lib/portcullis/libportcullis-preload.so");
    file.to_string_lossy().into_owned()
}

/// Runs a job to its end; panics unless it succeeds.
pub fn succeeds(command: &mut Command) -> Outcome {
    process::output(command, LIMIT).unwrap_or_else(|e| panic!("{e}"))
}

/// Waits until a job has printed `words` on standard error, and then printed nothing for `QUIET`;
/// ends the job and returns its output.
pub fn complains(command: &mut Command, words: &str) -> String {
    /// Time without output after which the output is taken as complete; launchers forward output in pieces.
    const QUIET: Duration = Duration::from_millis(300);
    // A launcher that is killed leaves its session folder, which is therefore created in this temporary folder.
    let scratch = tempfile::tempdir().unwrap_or_else(|e| panic!("no folder: {e}"));
    command.env("TMPDIR", scratch.path());
    let running = Running::start(command).unwrap_or_else(|e| panic!("{e}"));
    let begin = Instant::now();
    let (mut said, mut since) = (String::new(), Instant::now());
    while !said.contains(words) || since.elapsed() < QUIET {
        std::thread::sleep(Duration::from_millis(10));
        let now = running.stderr_so_far();
        if now != said {
            (said, since) = (now, Instant::now());
        }
        assert!(begin.elapsed() < LIMIT, "no {words:?} in:\n{said}");
    }
    let process = i32::try_from(running.id()).expect("a process");
    crate::job::send(process, rustix::process::Signal::TERM);
    // The exit status is not checked: Open MPI 4.1's launcher sometimes hangs
    // in `PMIx_server_finalize`, and is killed after this time limit.
    let _ = running.wait(Duration::from_secs(10));
    said
}
