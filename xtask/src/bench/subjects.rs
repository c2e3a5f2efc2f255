//! The installations to measure (Portcullis, MPICH, Open MPI): built, fetched, or named by the user.

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

/// An MPI library with which Portcullis is compared.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    /// The library's name in the output of `mpi-bench`.
    pub library: &'static str,
    /// The placeholder for the library's folder in the commands of the report.
    pub word: &'static str,
    /// The file name of the launcher, which prints the library's version.
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
    /// Returns true if the user named no installation, so Portcullis is built here.
    pub fn is_built_here(&self) -> bool {
        self.installed.is_none()
    }

    /// Returns Portcullis's installation folder; if the user named none, it is built fully optimised.
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

    /// Returns the folder of a compared library; if the user named none, it is fetched.
    pub fn peer(&self, peer: &Peer) -> Result<PathBuf, VenvError> {
        if let Some(folder) = (peer.named)(self) {
            return Ok(absolute(folder));
        }
        peer.venv.ensure(&[])?;
        Ok(peer.venv.path())
    }
}

/// Makes a path absolute, because each run has its own working folder.
fn absolute(folder: &PathBuf) -> PathBuf {
    std::path::absolute(folder).unwrap_or_else(|_| folder.clone())
}
