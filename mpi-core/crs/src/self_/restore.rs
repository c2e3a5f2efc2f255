//! Restart from a checkpoint: all ranks call [`restore`] at their first point.

use super::gather::share;
use crate::store::{Damage, rank_folder, read_manifest, verify};
use mpi_engine::comm::Comm;
use mpi_types::error::{Error, Failure};
use printable::name;
use std::fmt;
use std::path::Path;

/// The reasons why a rank cannot restart from a checkpoint.
#[derive(Debug)]
pub enum RestoreError {
    /// This rank found the checkpoint damaged.
    Damage {
        rank: u32,
        set: String,
        damage: Damage,
    },
    /// The job has another number of ranks than the checkpoint.
    Ranks { set: String, then: u32, now: u32 },
    /// The program's load function or a registered memory region failed.
    Load { rank: u32, why: String },
    /// This rank succeeded, but rank `rank` failed.
    Other { rank: usize, set: String },
}

impl fmt::Display for RestoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RestoreError::Damage { rank, set, damage } => write!(
                f,
                "rank {rank} cannot begin from the checkpoint {}: {damage}; mpirun --restart DIR@N begins from another one",
                name(set)
            ),
            RestoreError::Ranks { set, then, now } => write!(
                f,
                "the checkpoint {} is of {then} ranks, and this job has {now}",
                name(set)
            ),
            RestoreError::Load { rank, why } => {
                write!(f, "rank {rank} cannot begin from its checkpoint: {why}")
            }
            RestoreError::Other { rank, set } => write!(
                f,
                "rank {rank} cannot begin from the checkpoint {}",
                name(set)
            ),
        }
    }
}

impl std::error::Error for RestoreError {}

impl Failure for RestoreError {}

/// Checks this rank's files of a checkpoint and reads them with `load`.
/// If one rank fails, all ranks return an error.
pub fn restore(
    comm: &Comm,
    set: &Path,
    load: impl FnOnce(&Path) -> Result<(), String>,
) -> Result<(), Error> {
    let checked = check(comm, set);
    agree(comm, set, checked)?;
    let rank = comm.rank();
    let loaded = load(&rank_folder(set, rank));
    agree(
        comm,
        set,
        loaded.map_err(|why| RestoreError::Load { rank, why }),
    )
}

fn check(comm: &Comm, set: &Path) -> Result<(), RestoreError> {
    let (rank, shown) = (comm.rank(), set.display().to_string());
    let damaged = |damage| RestoreError::Damage {
        rank,
        set: shown.clone(),
        damage,
    };
    let manifest = read_manifest(set).map_err(damaged)?;
    if manifest.ranks() != comm.size() {
        return Err(RestoreError::Ranks {
            set: shown,
            then: manifest.ranks(),
            now: comm.size(),
        });
    }
    verify(set, &manifest, rank).map_err(damaged)
}

/// Returns an error at all ranks if `mine` is an error at any rank.
fn agree(comm: &Comm, set: &Path, mine: Result<(), RestoreError>) -> Result<(), Error> {
    let all = share(comm, mine.is_ok().into())?;
    mine.map_err(Error::from)?;
    match all.iter().position(|word| *word == 0) {
        Some(rank) => Err(RestoreError::Other {
            rank,
            set: set.display().to_string(),
        }
        .into()),
        None => Ok(()),
    }
}
