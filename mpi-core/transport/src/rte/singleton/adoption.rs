//! The launcher that a singleton starts on its first spawn: the `mpirun` installed with the library.
//!
//! `mpirun --adopt NAME` takes this process as rank 0 of a job of that name, and serves PMI-1 to it over its standard input.
//! From then on the two behave as any launcher and its rank.
//! One difference: this mpirun sends no signals to a process that it has not started.
//! If a job fails, the socket closes, and this process ends when it detects the closed socket.

use super::super::pmi1::Pmi1;
use super::super::{Identity, RteError, universe_of};
use mpi_base::cpu::Cores;
use mpi_base::installation;
use mpi_base::privilege;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::io;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Starts a launcher that serves this process.
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
    // The program forks a copy of itself and exits at once, so that the application never has an unexpected child.
    let mut child = command.spawn().map_err(|error| failed(starting(), error))?;
    // Closes this process's copy of mpirun's end of the socket;
    // otherwise this process would not detect the hang-up.
    drop(command);
    match child.wait() {
        Ok(status) if !status.success() => {
            let why = io::Error::other(format!("it ended with {status}"));
            Err(failed(starting(), why))
        }
        // A program that ignores SIGCHLD does not get the exit status.
        // The PMI-1 handshake then detects the failure.
        _ => Pmi1::adopted(ours, identity.clone()),
    }
}

/// Returns the universe size of the launcher that a spawn would start, this process included;
/// `None` if no launcher is installed.
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
