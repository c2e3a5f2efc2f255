//! One checkpoint of all processes, from the dump to the commit.

use super::remote::HostError;
use super::run::{Run, log_of};
use super::still::Processes;
use crate::launch::program::Images;
use crate::launch::wire::Failure;
use mpi_core::crs::criu::{self, After, CriuError};
use mpi_core::crs::manifest::{FileEntry, Manifest};
use mpi_core::crs::store::{Draft, Store, StoreError, seal};
use rustix::fd::BorrowedFd;
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
    /// Dumps the processes to a new folder of the checkpoint `set`.
    /// Returns the entries of the manifest about them.
    pub(super) fn dump(
        &self,
        program: &Path,
        (set, host): (&Path, u32),
        log: &Path,
        after: After,
    ) -> Result<Vec<(String, String)>, TakeError> {
        let folder = set.join(criu::images_of(host));
        fs::create_dir(&folder).map_err(|error| TakeError::Images {
            doing: "written",
            error,
        })?;
        let outside = [self.outside.socket, self.outside.peer];
        let dumped = Run {
            program,
            arguments: criu::dump_arguments(self.launcher, &folder, log, &outside, after),
            environment: Vec::new(),
            inherited: &[],
            mounts: self.mounts,
            doing: "dump",
            log,
        };
        dumped.run().map_err(TakeError::Criu)?;
        let outside = &self.outside;
        let entries = [
            (LAUNCHER, self.launcher.to_string()),
            (SOCKET, outside.socket.to_string()),
            (STDIN, outside.stdin.to_string()),
            (STDOUT, outside.stdout.to_string()),
            (STDERR, outside.stderr.to_string()),
        ];
        let entries = entries.map(|(name, value)| (entry(name, host), value));
        Ok(entries.into())
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
    Criu(CriuError),
    /// The process that keeps the process numbers of a restored job cannot be found.
    Keeper(io::Error),
    Images {
        doing: &'static str,
        error: io::Error,
    },
    Host(HostError),
    /// A process of the job ended before or during the dump, so a restored job would end at once.
    Ended(i32),
}

impl TakeError {
    /// Returns true if a killed CRIU may have left changes in the processes.
    pub(super) fn is_damaged(&self) -> bool {
        match self {
            TakeError::Criu(error) => matches!(error, CriuError::Killed { .. }),
            TakeError::Host(error) => error.failure.is_damaged,
            _ => false,
        }
    }

    /// Returns the error for the front end on another host.
    pub(super) fn into_failure(self) -> Failure {
        Failure {
            why: self.to_string(),
            is_damaged: self.is_damaged(),
            may_repeat: false,
        }
    }
}

impl fmt::Display for TakeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TakeError::Store(error) => error.fmt(f),
            TakeError::Criu(error) => error.fmt(f),
            TakeError::Keeper(error) => write!(
                f,
                "the process that keeps the job's process numbers cannot be found: {error}"
            ),
            TakeError::Images { doing, error } => {
                write!(f, "the images of the processes cannot be {doing}: {error}")
            }
            TakeError::Host(error) => error.fmt(f),
            TakeError::Ended(process) => {
                write!(
                    f,
                    "process {process} of the job ended while the job was saved"
                )
            }
        }
    }
}

impl std::error::Error for TakeError {}

/// Takes a checkpoint of a job on this host. `after` is the state of the processes after a successful dump.
pub(super) fn take(
    (tree, processes): (Tree<'_>, &Processes),
    images: &Images,
    dir: &Path,
    store: &mut Store,
    after: After,
) -> Result<Taken, TakeError> {
    let draft = store.begin().map_err(TakeError::Store)?;
    let written = || {
        let log = log_of(dir, "dump", 0);
        let entries = tree.dump(&images.program, (&draft.folder, 0), &log, after)?;
        if let Some(rank) = processes.ended_rank() {
            return Err(TakeError::Ended(rank));
        }
        let files = sealed(&draft.folder, 0)?;
        commit(store, &draft, images, (entries, files))
    };
    let taken = written();
    if taken.is_err() {
        store.discard(&draft);
    }
    taken
}

/// Syncs the images of a host and returns their entries.
pub(super) fn sealed(set: &Path, host: u32) -> Result<Vec<FileEntry>, TakeError> {
    let folder = set.join(criu::images_of(host));
    seal(&folder, host).map_err(|error| TakeError::Images {
        doing: "synced",
        error,
    })
}

/// Commits a checkpoint whose files are written and synced.
pub(super) fn commit(
    store: &Store,
    draft: &Draft,
    images: &Images,
    (entries, files): (Vec<(String, String)>, Vec<FileEntry>),
) -> Result<Taken, TakeError> {
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
        hosts: vec![crate::hosts::own_name().into(); images.job.ranks() as usize],
        files,
    };
    let committed = store.commit(draft, &manifest, images.keep);
    let folder = committed.map_err(TakeError::Store)?;
    Ok(Taken {
        number: draft.number,
        folder,
        bytes: manifest.bytes(),
    })
}
