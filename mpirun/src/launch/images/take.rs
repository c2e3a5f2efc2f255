//! One checkpoint of all processes, from the dump to the commit.

use super::run::{Run, log_of};
use crate::launch::program::Images;
use mpi_core::crs::criu::{self, After, CriuError};
use mpi_core::crs::manifest::Manifest;
use mpi_core::crs::store::{Draft, Store, StoreError, seal};
use rustix::fd::BorrowedFd;
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The names of the manifest's entries beside the kernel's and CRIU's version.
pub(super) const SUPERVISOR: &str = "supervisor";
pub(super) const SOCKET: &str = "socket";
pub(super) const STDOUT: &str = "stdout";
pub(super) const STDERR: &str = "stderr";

/// The files through which the dumped processes are connected with the front end, as inodes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outside {
    /// The supervisor's end of the socket, and the front end's.
    pub socket: u64,
    pub peer: u64,
    pub stdout: u64,
    pub stderr: u64,
}

/// The processes to dump.
#[derive(Clone, Copy)]
pub(super) struct Tree<'a> {
    /// The supervisor's pid in its own PID namespace.
    pub supervisor: i32,
    pub outside: Outside,
    /// The mount namespace of a restored job.
    pub mounts: Option<BorrowedFd<'a>>,
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
        }
    }
}

impl std::error::Error for TakeError {}

/// Takes a checkpoint. `after` is the state of the processes after a successful dump.
pub(super) fn take(
    tree: Tree<'_>,
    images: &Images,
    dir: &Path,
    store: &mut Store,
    after: After,
) -> Result<Taken, TakeError> {
    let draft = store.begin().map_err(TakeError::Store)?;
    let taken = write(tree, images, dir, store, (&draft, after));
    if taken.is_err() {
        store.discard(&draft);
    }
    taken
}

fn write(
    tree: Tree<'_>,
    images: &Images,
    dir: &Path,
    store: &Store,
    (draft, after): (&Draft, After),
) -> Result<Taken, TakeError> {
    let failed = |doing| move |error| TakeError::Images { doing, error };
    let folder = draft.folder.join(criu::IMAGES);
    fs::create_dir(&folder).map_err(failed("written"))?;
    let log = log_of(dir, "dump");
    let outside = [tree.outside.socket, tree.outside.peer];
    let dumped = Run {
        program: &images.program,
        arguments: criu::dump_arguments(tree.supervisor, &folder, &log, &outside, after),
        inherited: &[],
        mounts: tree.mounts,
        doing: "dump",
        log: &log,
    };
    dumped.run().map_err(TakeError::Criu)?;
    let files = seal(&folder, 0).map_err(failed("synced"))?;
    let manifest = Manifest {
        component: criu::NAME.into(),
        number: draft.number,
        point: 0,
        library: env!("CARGO_PKG_VERSION").into(),
        job: images.job.clone(),
        system: system(&tree, &images.version),
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

/// Returns the manifest's entries about the system and the processes.
fn system(tree: &Tree<'_>, version: &str) -> Vec<(String, OsString)> {
    let kernel = rustix::system::uname();
    let kernel = kernel.release().to_string_lossy().into_owned();
    let outside = &tree.outside;
    let entries = [
        ("kernel", kernel),
        (criu::NAME, version.into()),
        (SUPERVISOR, tree.supervisor.to_string()),
        (SOCKET, outside.socket.to_string()),
        (STDOUT, outside.stdout.to_string()),
        (STDERR, outside.stderr.to_string()),
    ];
    let entries = entries.into_iter();
    entries
        .map(|(name, value)| (name.to_owned(), value.into()))
        .collect()
}
