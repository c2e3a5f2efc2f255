//! The installation that all tests share, and mpi4py that is built with its `mpicc`.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::cargo::Profile;
use crate::install::{self, Contents, InstallError, Programs};
use crate::venv::{Venv, VenvError};
use crate::workspace;

/// Returns the prefix of the installation that all tests share.
pub fn installation() -> PathBuf {
    workspace::target().join("test-installation")
}

/// Environment variable with the prefix of an existing installation to test; if it is set, no installation is
/// built.
///
/// `cargo xtask test` sets the variable to the installation that it built.
/// A developer can set it to the installation of a package, to test that package,
/// or to another MPI implementation, to check the tests: they should pass there too.
pub const MADE: &str = "PORTCULLIS_TEST_PREFIX";

/// The parts that the shared installation has.
pub const CONTENTS: Contents = Contents {
    profile: Profile::Tests,
    bare: false,
    plugins: true,
    others: true,
    programs: Programs::All,
};

/// Makes the shared installation, unless an earlier process has made it.
pub fn ensure() -> Result<(), InstallError> {
    match is_made() {
        true => Ok(()),
        false => install::install(&installation(), &CONTENTS),
    }
}

/// Returns true if `cargo xtask test` runs this program; it has made the shared installation.
pub fn is_made() -> bool {
    std::env::var_os(MADE).is_some_and(|made| Path::new(&made) == installation())
}

/// The reason why mpi4py could not be built.
#[derive(Debug)]
pub enum BuildError {
    /// The installation whose `mpicc` builds mpi4py could not be made.
    Install(InstallError),
    /// The Python environment of mpi4py could not be created.
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

/// Builds mpi4py with the `mpicc` of the shared installation, which must exist already,
/// because a build here would wait for cargo's lock while the tests are built.
///
/// The extension is linked only to the standard ABI's soname, so one build serves all libraries:
/// in each run the library path selects one.
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
