//! What is measured: our installation and the peers', made by us or named by the user.

use std::path::PathBuf;

use clap::Args;

use crate::cargo::Profile;
use crate::install::{self, Contents, InstallError, Programs};
use crate::venv::{self, Venv, VenvError};
use crate::workspace;

/// Installations that are there already.
#[derive(Clone, Debug, Args)]
pub struct Subjects {
    /// Measure what is installed in this folder instead of building it
    #[arg(long, value_name = "DIR")]
    installed: Option<PathBuf>,
    /// Compare with the Open MPI that is installed in this folder instead of fetching one
    #[arg(long, value_name = "DIR", requires = "compared")]
    openmpi: Option<PathBuf>,
    /// Compare with the MPICH that is installed in this folder instead of fetching one
    #[arg(long, value_name = "DIR", requires = "compared")]
    mpich: Option<PathBuf>,
}

/// A library that ours is compared with.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    /// As `mpi-bench` calls it.
    pub library: &'static str,
    /// What stands for its folder where commands are shown.
    pub word: &'static str,
    /// Its launcher, which knows its version.
    pub launcher: &'static str,
    venv: Venv,
    named: fn(&Subjects) -> Option<&PathBuf>,
}

/// In the order of the columns.
pub const PEERS: [Peer; 2] = [
    Peer {
        library: "Open MPI",
        word: "OPENMPI",
        launcher: "mpirun",
        venv: venv::OPEN_MPI,
        named: |subjects| subjects.openmpi.as_ref(),
    },
    Peer {
        library: "MPICH",
        word: "MPICH",
        launcher: "mpiexec.hydra",
        venv: venv::MPICH,
        named: |subjects| subjects.mpich.as_ref(),
    },
];

impl Subjects {
    /// Whether our side is built here, from these sources.
    pub fn is_built_here(&self) -> bool {
        self.installed.is_none()
    }

    /// The folder of our installation; built with all optimisation unless the user named one.
    pub fn ours(&self) -> Result<PathBuf, InstallError> {
        if let Some(folder) = &self.installed {
            return Ok(absolute(folder));
        }
        let prefix = workspace::target().join("bench");
        let contents = Contents {
            profile: Profile::Release,
            bare: false,
            plugins: true,
            others: true,
            programs: Programs::All,
        };
        install::install(&prefix, &contents)?;
        Ok(prefix)
    }

    /// The folder of a peer's installation; fetched unless the user named one.
    pub fn peer(&self, peer: &Peer) -> Result<PathBuf, VenvError> {
        if let Some(folder) = (peer.named)(self) {
            return Ok(absolute(folder));
        }
        peer.venv.ensure(&[])?;
        Ok(peer.venv.path())
    }
}

/// Runs have folders of their own.
fn absolute(folder: &PathBuf) -> PathBuf {
    std::path::absolute(folder).unwrap_or_else(|_| folder.clone())
}
