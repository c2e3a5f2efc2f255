//! The part of one host in a checkpoint, and the commit of a checkpoint.

use super::remote::HostError;
use super::run::Run;
use super::still::Processes;
use super::work::Work;
use crate::launch::program::Images;
use crate::launch::wire::Failure;
use mpi_core::crs::criu::{self, After};
use mpi_core::crs::manifest::{FileEntry, Manifest};
use mpi_core::crs::store::{Draft, Store, StoreError, seal};
use rustix::fd::BorrowedFd;
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The names of the manifest's entries about the processes of a host. Those of another host than
/// mpirun's have the number of the host as suffix ([`entry`]).
pub(super) const LAUNCHER: &str = "supervisor";
pub(super) const SOCKET: &str = "socket";
pub(super) const STDIN: &str = "stdin";
pub(super) const STDOUT: &str = "stdout";
pub(super) const STDERR: &str = "stderr";
/// The numbers of the processes that were stopped before the checkpoint, separated by spaces.
pub(super) const STOPPED: &str = "stopped";
/// The addresses of the TCP connections with other hosts, separated by spaces.
pub(super) const ADDRESSES: &str = "addresses";

/// The entries about another host: its name, and the supervisor's pipes to it and from it.
pub(super) const NAME: &str = "name";
pub(super) const TO: &str = "to";
pub(super) const FROM: &str = "from";

/// The entries about the command that reaches other hosts: its words, and mpirun's path there.
pub(super) const AGENT: &str = "agent";
pub(super) const MPIRUN: &str = "mpirun";

/// Returns the name of a host's entry. Host 0 is that of mpirun.
pub(super) fn entry(name: &str, host: u32) -> String {
    match host {
        0 => name.to_owned(),
        host => format!("{name}-{host}"),
    }
}

/// The state after the dump of processes that were stopped before it. CRIU leaves such processes stopped,
/// and ends the repair mode of their connections, which it would not do with [`After::Stopped`].
const STAYS_STOPPED: After = After::Running;

/// The settings of a checkpoint.
pub(super) struct Wanted<'a> {
    pub images: &'a Images,
    /// The folder of the checkpoints.
    pub dir: &'a Path,
    /// The host of each rank, by name.
    pub placement: Vec<OsString>,
    /// Whether the processes stay stopped after a successful checkpoint.
    pub stays_stopped: bool,
}

/// The files through which the dumped processes are connected with the front end or the guard, as inodes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outside {
    /// The end of the dumped launcher of the socket, and the other end.
    pub socket: u64,
    pub peer: u64,
    pub stdin: u64,
    pub stdout: u64,
    pub stderr: u64,
}

/// The processes to dump.
#[derive(Clone, Copy)]
pub(super) struct Tree<'a> {
    /// The launcher's pid in its own PID namespace.
    pub launcher: i32,
    pub outside: Outside,
    /// The mount namespace of a restored job.
    pub mounts: Option<BorrowedFd<'a>>,
}

impl Tree<'_> {
    /// Begins to dump the processes to a new folder of the checkpoint `set`.
    /// The outcome is the manifest's entries about them.
    pub(super) fn dump(
        &self,
        program: &Path,
        (set, host): (&Path, u32),
        log: &Path,
        processes: &Processes,
    ) -> Work<Vec<(String, String)>> {
        let folder = set.join(criu::images_of(host));
        if let Err(error) = fs::create_dir(&folder) {
            let why = format!("the images of the processes cannot be written: {error}");
            return Work::Done(Err(Failure::of(why)));
        }
        let outside = [self.outside.socket, self.outside.peer];
        let dumped = Run {
            program,
            arguments: criu::dump_arguments(self.launcher, &folder, log, &outside, STAYS_STOPPED),
            environment: Vec::new(),
            inherited: &[],
            mounts: self.mounts,
            doing: "dump",
            log,
        };
        let outside = &self.outside;
        let stopped = processes.stopped_before().into_iter();
        let stopped: Vec<String> = stopped.map(|pid| pid.to_string()).collect();
        let entries = [
            (LAUNCHER, self.launcher.to_string()),
            (SOCKET, outside.socket.to_string()),
            (STDIN, outside.stdin.to_string()),
            (STDOUT, outside.stdout.to_string()),
            (STDERR, outside.stderr.to_string()),
            (STOPPED, stopped.join(" ")),
        ];
        let entries = entries.map(|(name, value)| (entry(name, host), value));
        dumped.begin().map(move |()| entries.into())
    }
}

/// A committed checkpoint.
pub(super) struct Taken {
    pub number: u64,
    pub folder: PathBuf,
    pub bytes: u64,
}

/// The reason why no checkpoint was taken.
#[derive(Debug)]
pub(super) enum TakeError {
    Store(StoreError),
    /// The process that keeps the process numbers of a restored job cannot be found.
    Keeper(io::Error),
    Host(HostError),
}

impl TakeError {
    /// Returns true if a killed CRIU may have left changes in the processes of a host.
    pub(super) fn is_damaged(&self) -> bool {
        matches!(self, TakeError::Host(error) if error.failure.is_damaged)
    }
}

impl fmt::Display for TakeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TakeError::Store(error) => error.fmt(f),
            TakeError::Keeper(error) => write!(
                f,
                "the process that keeps the job's process numbers cannot be found: {error}"
            ),
            TakeError::Host(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for TakeError {}

/// A file of the images: name, length and CRC-32.
pub(super) type Sealed = (OsString, u64, u32);

/// Begins to sync the images of a host.
pub(super) fn sealing(set: PathBuf, host: u32) -> Work<Vec<Sealed>> {
    Work::in_a_child("the sync of the images", move || {
        let sealed = seal(&set.join(criu::images_of(host)), host);
        let sealed = sealed
            .map_err(|error| format!("the images of the processes cannot be synced: {error}"));
        let files = sealed?.into_iter();
        Ok(files.map(|file| (file.name, file.len, file.crc)).collect())
    })
}

/// Commits a checkpoint whose files are written and synced.
pub(super) fn commit(
    store: &Store,
    draft: &Draft,
    wanted: &Wanted<'_>,
    (entries, files): (Vec<(String, String)>, Vec<FileEntry>),
) -> Result<Taken, TakeError> {
    let images = wanted.images;
    let kernel = rustix::system::uname();
    let kernel = kernel.release().to_string_lossy().into_owned();
    let system = [
        ("kernel".to_owned(), kernel),
        (criu::NAME.to_owned(), images.version.clone()),
    ];
    let system = system.into_iter().chain(entries);
    let manifest = Manifest {
        component: criu::NAME.into(),
        number: draft.number,
        point: 0,
        library: env!("CARGO_PKG_VERSION").into(),
        job: images.job.clone(),
        system: system.map(|(name, value)| (name, value.into())).collect(),
        hosts: wanted.placement.clone(),
        files,
    };
    let committed = store.commit(draft, &manifest);
    let folder = committed.map_err(TakeError::Store)?;
    Ok(Taken {
        number: draft.number,
        folder,
        bytes: manifest.bytes(),
    })
}
