//! Start of a launcher by a singleton, when it first spawns other processes: the `mpirun` that is installed with this library.
//!
//! `mpirun --adopt NAME` treats this process as rank 0 of a job with the name NAME, and serves PMI-1 to this process over mpirun's standard input.
//! Then the two processes behave like any launcher and its rank,
//! with one difference: this mpirun sends no signals to a process that it has not started.
//! If the job fails, mpirun closes the socket, and this process ends when it detects this.

use super::super::pmi1::Pmi1;
use super::super::{Identity, RteError, universe_of};
use mpi_base::cpu::Cores;
use mpi_base::installation;
use mpi_base::privilege;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::io;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Starts an mpirun that serves this process as its launcher.
pub(super) fn adopt(identity: &Identity) -> Result<Pmi1, RteError> {
    if privilege::is_raised() {
        return Err(RteError::NotStarted {
            why: "this program has more rights than its user (set-user-ID or the like), and mpirun would start what the user's environment names; start the program with the mpirun of this library"
                .into(),
        });
    }
    let program = mpirun().map_err(|why| failed("looking for mpirun".into(), why))?;
    let starting = || format!("starting {}", program.display());
    let (ours, theirs) = socketpair(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )
    .map_err(|error| failed(starting(), error.into()))?;
    let me = std::env::args_os().next().unwrap_or_default();
    let mut command = Command::new(&program);
    command
        .args(["--adopt", &identity.job, "-n", "1", "--"])
        .arg(me)
        .stdin(Stdio::from(theirs));
    // mpirun forks a copy of itself and exits immediately, so the application has no unexpected child process.
    let mut child = command.spawn().map_err(|error| failed(starting(), error))?;
    // Closes this process's copy of mpirun's end of the socket.
    // Otherwise this process could not detect that mpirun has closed the socket.
    drop(command);
    match child.wait() {
        Ok(status) if !status.success() => {
            let why = io::Error::other(format!("it ended with {status}"));
            Err(failed(starting(), why))
        }
        // If the program ignores SIGCHLD, `wait` does not return the exit status.
        // Then the PMI-1 handshake detects a failure of mpirun.
        _ => Pmi1::adopted(ours, identity.clone()),
    }
}

/// Returns the universe size under the launcher that a spawn would start, including this process.
/// Returns `None` if no launcher is installed.
pub(super) fn universe_size() -> Option<u32> {
    mpirun().ok()?;
    u32::try_from(universe_of(Cores::of_this_process().usable, 1)).ok()
}

fn failed(doing: String, error: io::Error) -> RteError {
    RteError::System { doing, error }
}

fn mpirun() -> io::Result<PathBuf> {
    let nowhere = || io::Error::other("the folder of this library is not known");
    let program = installation::prefix()
        .ok_or_else(nowhere)?
        .join("bin/mpirun");
    match program.is_file() {
        true => Ok(program),
        false => Err(io::Error::other(format!(
            "{} is not there; start the program with the mpirun of this library",
            program.display()
        ))),
    }
}
