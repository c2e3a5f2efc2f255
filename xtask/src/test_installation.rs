//! The installation that the tests share, and mpi4py built with it.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::cargo::Profile;
use crate::install::{self, Contents, InstallError, Programs};
use crate::venv::{Venv, VenvError};
use crate::workspace;

/// The installation that the tests share.
pub fn installation() -> PathBuf {
    workspace::target().join("test-installation")
}

/// The parts of that installation.
pub const CONTENTS: Contents = Contents {
    profile: Profile::Tests,
    bare: false,
    plugins: true,
    others: true,
    programs: Programs::All,
};

/// Why mpi4py could not be built.
#[derive(Debug)]
pub enum BuildError {
    /// The installation whose `mpicc` builds it could not be made.
    Install(InstallError),
    /// Its environment could not be made.
    Venv(VenvError),
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Install(error) => error.fmt(f),
            Self::Venv(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for BuildError {}

/// The extension is linked to the standard ABI's soname only, so it is built once; each run finds its library by the library path.
pub fn build_mpi4py(environment: Venv) -> Result<(), BuildError> {
    if environment.is_there() {
        return Ok(());
    }
    let prefix = installation();
    install::install(&prefix, &CONTENTS).map_err(BuildError::Install)?;
    let mpicc = prefix.join("bin/mpicc");
    let variables = [
        ("MPICC", mpicc.as_path()),
        ("MPI4PY_BUILD_MPIABI", Path::new("1")),
    ];
    environment.ensure(&variables).map_err(BuildError::Venv)
}
