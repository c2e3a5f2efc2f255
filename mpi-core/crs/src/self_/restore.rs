//! Beginning from a checkpoint: all ranks call [`restore`] at their first point.

use super::gather::share;
use crate::store::{Damage, rank_folder, read_manifest, verify};
use mpi_engine::comm::Comm;
use mpi_types::error::{Error, Failure};
use printable::name;
use std::fmt;
use std::path::Path;

/// Why a rank does not begin from a checkpoint.
#[derive(Debug)]
pub enum RestoreError {
    /// The checkpoint is damaged, as this rank has found.
    Damage {
        rank: u32,
        set: String,
        damage: Damage,
    },
    /// The numbers of ranks differ.
    Ranks { set: String, then: u32, now: u32 },
    /// The program's function, or the regions that it has registered.
    Load { rank: u32, why: String },
    /// This rank is well, and this one is not.
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

/// Checks this rank's files of a checkpoint and lets `load` read them; fails at all ranks if it fails at one.
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

/// Fails at all ranks if it has failed at one.
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
