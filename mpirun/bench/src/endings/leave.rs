//! Rank of `mpi-bench endings`: waits for a message that no rank sends; rank 1 ends as requested.

use std::fmt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use clap::{Parser, ValueEnum};
use rustix::process::{Signal, getpid, kill_process};

use super::watch::Folder;
use crate::mpi::{Library, LoadError, MpiError, World};

/// The behaviour of rank 1: the end that it causes, or waiting for a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LeaveMode {
    /// Rank 1 does not end
    Wait,
    /// Rank 1 does not end, and ignores all signals that can be ignored
    Deaf,
    /// Rank 1 does not end, and every rank has a child
    Fork,
    Segv,
    Exit,
    Quiet,
    Abort,
}

impl LeaveMode {
    pub fn name(self) -> &'static str {
        match self {
            LeaveMode::Wait => "wait",
            LeaveMode::Deaf => "deaf",
            LeaveMode::Fork => "fork",
            LeaveMode::Segv => "segv",
            LeaveMode::Exit => "exit",
            LeaveMode::Quiet => "quiet",
            LeaveMode::Abort => "abort",
        }
    }
}

/// Arguments of a rank of `mpi-bench endings`.
#[derive(Clone, Debug, Parser)]
pub struct Leave {
    #[arg(value_enum)]
    mode: LeaveMode,
    /// The MPI library
    #[arg(long)]
    lib: PathBuf,
    /// The folder for notes between the ranks and the process that observes them
    #[arg(long)]
    folder: PathBuf,
}

/// The reason why a rank failed before or at its receive.
#[derive(Debug)]
pub enum LeaveError {
    Load(LoadError),
    Mpi(MpiError),
    Note(std::io::Error),
    /// A message arrived, although no rank sends one.
    Woken,
}

impl fmt::Display for LeaveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Load(error) => error.fmt(f),
            Self::Mpi(error) => error.fmt(f),
            Self::Note(error) => write!(f, "a note could not be left: {error}"),
            Self::Woken => f.write_str("a message came that no rank sends"),
        }
    }
}

impl std::error::Error for LeaveError {}

/// Runs one rank; returns only on an error.
pub fn leave(task: &Leave) -> Result<(), LeaveError> {
    let library = Library::load(&task.lib).map_err(LeaveError::Load)?;
    let (world, _) = library.init(false).map_err(LeaveError::Mpi)?;
    let folder = Folder::at(&task.folder);
    if task.mode == LeaveMode::Fork {
        // The child keeps the rank's standard output and error open.
        // The child outlives the rank unless a launcher kills the child.
        let child = Command::new("sleep").arg("60").stdin(Stdio::null()).spawn();
        let child = child.map_err(LeaveError::Note)?.id();
        folder
            .has_child(world.rank(), child)
            .map_err(LeaveError::Note)?;
    }
    world.barrier().map_err(LeaveError::Mpi)?;
    folder.ready(world.rank()).map_err(LeaveError::Note)?;
    let leaves = !matches!(
        task.mode,
        LeaveMode::Wait | LeaveMode::Deaf | LeaveMode::Fork
    );
    if leaves && world.rank() == 1.min(world.size() - 1) {
        while !folder.may_go() {
            std::thread::sleep(Duration::from_millis(1));
        }
        folder.says_deed().map_err(LeaveError::Note)?;
        go(&world, task.mode);
    }
    let mut nothing = [0u8];
    let from = (world.rank() + 1) % world.size();
    world
        .recv(&mut nothing, from, 12345)
        .map_err(LeaveError::Mpi)?;
    Err(LeaveError::Woken)
}

fn go(world: &World<'_>, mode: LeaveMode) {
    match mode {
        LeaveMode::Exit => world.exit_now(3),
        LeaveMode::Quiet => world.exit_now(0),
        LeaveMode::Abort => world.abort(42),
        LeaveMode::Segv => loop {
            // The first signal only uninstalls Rust's stack overflow handler; a later signal kills.
            let _ = kill_process(getpid(), Signal::SEGV);
        },
        LeaveMode::Wait | LeaveMode::Deaf | LeaveMode::Fork => {}
    }
}
