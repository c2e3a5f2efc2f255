//! `self`: the component with which the program saves its own state, while no message is in flight.
//!
//! All ranks are at the same point ([`crate::points`]). They then take these steps:
//! 1. *flush*: each rank sends an empty message to each other rank and receives one from it.
//!    Messages of one pair do not overtake each other, so all earlier messages have arrived.
//! 2. *quiet*: each rank checks that it has no active operation and no unexpected message.
//!    If all ranks are quiet, each pair has received all messages that it sent.
//!    Otherwise each rank that is not quiet reports its pending messages and operations,
//!    and no rank writes a file.
//! 3. *write*: rank 0 creates the folder of the checkpoint.
//!    Each rank writes, syncs and checksums its files in its own folder.
//! 4. *commit*: rank 0 collects the file lists of all ranks,
//!    writes the manifest and renames the folder.
//!
//! If one rank fails in a step, all ranks drop the checkpoint, and the job continues.
//!
//! Step 2 needs no message counters, so sends and receives do not count messages.

mod gather;
mod restore;
mod take;

pub use restore::{RestoreError, restore};
pub use take::{Job, Taken, take};

use mpi_base::param::{Level, Param};
use std::path::PathBuf;

/// The name of this component, in manifests and in the parameter `crs`.
pub const NAME: &str = "self";

/// Parameter `crs_self_dir`, set by `mpirun --checkpoint-dir`.
pub static DIR: Param<PathBuf> = Param::new(
    "crs",
    "self",
    "dir",
    "",
    Level::USER,
    "Folder in which the ranks write checkpoints; set by mpirun --checkpoint-dir",
);

/// Parameter `crs_self_keep`, set by `mpirun --checkpoint-keep`.
pub static KEEP: Param<u32> = Param::new(
    "crs",
    "self",
    "keep",
    "2",
    Level::USER,
    "Number of checkpoints that are kept; an older one is removed when a new one is complete",
);

/// Parameter `crs_self_job`, set by mpirun: the programs of the job, stored in each checkpoint.
pub static JOB: Param<String> = Param::new(
    "crs",
    "self",
    "job",
    "",
    Level::USER,
    "The programs of the job, as a checkpoint keeps them; set by mpirun --checkpoint-dir",
);

/// Parameter `crs_self_restart`, set by `mpirun --restart`.
pub static RESTART: Param<PathBuf> = Param::new(
    "crs",
    "self",
    "restart",
    "",
    Level::USER,
    "Folder of the checkpoint that this job begins from; set by mpirun --restart",
);
