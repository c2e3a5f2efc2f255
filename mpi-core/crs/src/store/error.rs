//! The reasons why a folder of checkpoints cannot be used; each displays as one sentence.

use crate::description::Difference;
use crate::manifest::ManifestError;
use printable::name;
use std::fmt;
use std::io;

/// The reasons why a checkpoint is not complete.
#[derive(Debug)]
pub enum Damage {
    /// The job ended while it wrote this checkpoint.
    Unfinished,
    NoManifest(io::Error),
    Manifest(ManifestError),
    /// The manifest has this number, which is not the number of the folder.
    Renamed(u64),
    NoFile {
        file: String,
        error: io::Error,
    },
    Length {
        file: String,
        has: u64,
        had: u64,
    },
    Checksum {
        file: String,
    },
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Damage::Unfinished => f.write_str("it was being written when its job ended"),
            Damage::NoManifest(error) => write!(f, "its manifest cannot be read: {error}"),
            Damage::Manifest(error) => error.fmt(f),
            Damage::Renamed(number) => write!(f, "its manifest is that of checkpoint {number}"),
            Damage::NoFile { file, error } => {
                write!(f, "its file {} cannot be read: {error}", name(file))
            }
            Damage::Length { file, has, had } => {
                write!(f, "its file {} has {has} bytes and had {had}", name(file))
            }
            Damage::Checksum { file } => {
                write!(f, "the contents of its file {} have changed", name(file))
            }
        }
    }
}

/// The reasons why a folder of checkpoints cannot be used.
#[derive(Debug)]
pub enum StoreError {
    /// A system call failed: the folder, the attempted action, and the error.
    System {
        folder: String,
        doing: &'static str,
        error: io::Error,
    },
    /// Another job holds the folder's lock.
    InUse { folder: String },
    /// The file system has less space than the last checkpoint took.
    Full {
        folder: String,
        free: u64,
        last: u64,
    },
    /// No checkpoint is complete; `found` has the reason for each checkpoint.
    NoneWhole {
        folder: String,
        found: Vec<(String, Damage)>,
    },
    /// The checkpoint that the user requested by number is not complete.
    NotWhole { set: String, damage: Damage },
    /// The checkpoints belong to another job.
    Other { set: String, difference: Difference },
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::System {
                folder,
                doing,
                error,
            } => write!(
                f,
                "the folder of checkpoints {} cannot be {doing}: {error}",
                name(folder)
            ),
            StoreError::InUse { folder } => write!(
                f,
                "another job is writing checkpoints to {}; name another folder by --checkpoint-dir, or wait until that job has ended",
                name(folder)
            ),
            StoreError::Full { folder, free, last } => write!(
                f,
                "the file system of {} has {free} bytes left, and the last checkpoint took {last}; make space, or name another folder by --checkpoint-dir",
                name(folder)
            ),
            StoreError::NoneWhole { folder, found } if found.is_empty() => {
                write!(f, "there is no checkpoint in {}", name(folder))
            }
            StoreError::NoneWhole { folder, found } => {
                let found = found
                    .iter()
                    .map(|(set, damage)| format!("{}: {damage}", name(set)));
                let found = found.collect::<Vec<_>>().join("; ");
                write!(
                    f,
                    "there is no complete checkpoint in {}: {found}",
                    name(folder)
                )
            }
            StoreError::NotWhole { set, damage } => {
                write!(f, "the checkpoint {} is not complete: {damage}", name(set))
            }
            StoreError::Other { set, difference } => other(f, &name(set).to_string(), difference),
        }
    }
}

fn other(f: &mut fmt::Formatter<'_>, set: &str, difference: &Difference) -> fmt::Result {
    match difference {
        Difference::Ranks(then, now) => write!(
            f,
            "the checkpoint {set} is of {then} ranks, and this job has {now}; -n {then} restarts it, on any number of hosts"
        ),
        Difference::Programs(then, now) => write!(
            f,
            "the checkpoint {set} is of the program {then}, and this job runs {now}; name a folder of its own for each program"
        ),
        Difference::Contents(program) => write!(
            f,
            "the file of the program {program} has changed since the checkpoint {set}; restart with the file as it was, or name an empty folder and begin anew"
        ),
        Difference::Arguments(program) => write!(
            f,
            "the arguments of the program {program} differ from those of the checkpoint {set}; leave the program away after --restart to repeat them"
        ),
    }
}

impl std::error::Error for StoreError {}
