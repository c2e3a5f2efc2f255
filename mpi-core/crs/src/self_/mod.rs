//! `self`: the program saves its own state, at a point at which no message is in flight.
//!
//! All ranks are at the same point ([`crate::points`]). Then:
//! 1. *flush*: each rank sends an empty message to each other rank and receives one from it. Messages of one pair do not overtake each other,
//!    so what a rank had sent before has arrived;
//! 2. *quiet*: each rank checks that it has no active operation, and no message that no receive has taken. If all are quiet, the messages sent
//!    and received agree for each pair; otherwise the rank that is not quiet names the other side, and nothing is written;
//! 3. *write*: rank 0 creates the folder of the checkpoint, and each rank writes, syncs and sums its files in a folder of its own;
//! 4. *commit*: rank 0 collects the ranks' lists of files, writes the manifest, and renames the folder.
//!
//! One rank that fails in a step drops the checkpoint at all ranks, and the job goes on.
//!
//! The check needs no counters of messages, so the path of a message has none.

mod gather;
mod restore;
mod take;

pub use restore::{RestoreError, restore};
pub use take::{Job, Taken, take};

use mpi_base::param::{Level, Param};
use std::path::PathBuf;

/// Set by `mpirun --checkpoint-dir`.
pub static DIR: Param<PathBuf> = Param::new(
    "crs",
    "self",
    "dir",
    "",
    Level::USER,
    "Folder in which the ranks write checkpoints; set by mpirun --checkpoint-dir",
);

/// Set by `mpirun --checkpoint-keep`.
pub static KEEP: Param<u32> = Param::new(
    "crs",
    "self",
    "keep",
    "2",
    Level::USER,
    "Number of checkpoints that are kept; an older one is removed when a new one is complete",
);

/// Set by mpirun: the programs of the job, which each checkpoint keeps.
pub static JOB: Param<String> = Param::new(
    "crs",
    "self",
    "job",
    "",
    Level::USER,
    "The programs of the job, as a checkpoint keeps them; set by mpirun --checkpoint-dir",
);

/// Set by `mpirun --restart`.
pub static RESTART: Param<PathBuf> = Param::new(
    "crs",
    "self",
    "restart",
    "",
    Level::USER,
    "Folder of the checkpoint that this job begins from; set by mpirun --restart",
);
