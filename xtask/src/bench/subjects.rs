//! The measured installations (Portcullis, MPICH, Open MPI): built, fetched, or given by the user.

use std::path::PathBuf;

use clap::Args;

use crate::cargo::Profile;
use crate::install::{self, Contents, InstallError, Programs};
use crate::venv::{self, Venv, VenvError};
use crate::workspace;

/// Existing installations to measure.
#[derive(Clone, Debug, Args)]
pub struct Subjects {
    /// Measure the installation in this folder, and build nothing
    #[arg(long, value_name = "DIR")]
    installed: Option<PathBuf>,
    /// Compare with the Open MPI in this folder, and fetch none
    #[arg(long, value_name = "DIR", requires = "compared")]
    openmpi: Option<PathBuf>,
    /// Compare with the MPICH in this folder, and fetch none
    #[arg(long, value_name = "DIR", requires = "compared")]
    mpich: Option<PathBuf>,
}

/// Another MPI library for comparison.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    /// The library's name in `mpi-bench`.
    pub library: &'static str,
    /// The placeholder for the library's folder in printed commands.
    pub word: &'static str,
    /// The path of the launcher, which prints the version.
    pub launcher: &'static str,
    venv: Venv,
    named: fn(&Subjects) -> Option<&PathBuf>,
}

/// The compared libraries, in column order.
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
    /// Returns true if Portcullis is built from this repository.
    pub fn is_built_here(&self) -> bool {
        self.installed.is_none()
    }

    /// Returns the folder of Portcullis; unless given by the user, it is built fully optimised.
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

    /// Returns the folder of a compared library; unless given by the user, it is fetched.
    pub fn peer(&self, peer: &Peer) -> Result<PathBuf, VenvError> {
        if let Some(folder) = (peer.named)(self) {
            return Ok(absolute(folder));
        }
        peer.venv.ensure(&[])?;
        Ok(peer.venv.path())
    }
}

/// Makes a path absolute, since each run has a separate working folder.
fn absolute(folder: &PathBuf) -> PathBuf {
    std::path::absolute(folder).unwrap_or_else(|_| folder.clone())
}
