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

/// An environment variable that names a complete installation to test, so that no test program makes one.
///
/// `cargo xtask test` names the one that it has made. A developer can name a package's, or another implementation's, with which the tests themselves are tested.
pub const MADE: &str = "PORTCULLIS_TEST_PREFIX";

/// The parts of that installation.
pub const CONTENTS: Contents = Contents {
    profile: Profile::Tests,
    bare: false,
    plugins: true,
    others: true,
    programs: Programs::All,
};

/// Makes that installation, unless it was made before this process.
pub fn ensure() -> Result<(), InstallError> {
    let prefix = installation();
    match std::env::var_os(MADE) {
        Some(made) if Path::new(&made) == prefix => Ok(()),
        _ => install::install(&prefix, &CONTENTS),
    }
}

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

/// Builds mpi4py with the `mpicc` of that installation, which was made before: cargo would keep it waiting for the build of the tests.
///
/// The extension is linked to the standard ABI's soname only, so it is built once; each run finds its library by the library path.
pub fn build_mpi4py(environment: Venv) -> Result<(), BuildError> {
    if environment.is_there() {
        return Ok(());
    }
    let mpicc = installation().join("bin/mpicc");
    let variables = [
        ("MPICC", mpicc.as_path()),
        ("MPI4PY_BUILD_MPIABI", Path::new("1")),
    ];
    environment.ensure(&variables).map_err(BuildError::Venv)
}
