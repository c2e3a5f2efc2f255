//! Tests of packages: their programs run both from an unpacked folder and after installation by the package manager.

mod clean_root;
mod unpacked;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use tests::{installation, shipped_installation};
use xtask::package::{self, Compression, Packages};
use xtask::process::{self, Outcome};

/// Time limit for installing a package and running four small programs.
const LIMIT: Duration = Duration::from_secs(240);

/// The version of mpi4py that is installed from PyPI.
const MPI4PY: &str = "mpi4py==4.1.2";

/// A Python program that prints the number of ranks and the library version.
const HELLO: &str =
    "from mpi4py import MPI; c = MPI.COMM_WORLD; print(c.allreduce(1), MPI.Get_library_version())";

/// The packages of an installation, and the folder that contains them and nothing else.
struct Made {
    folder: PathBuf,
    packages: Packages,
}

/// Creates the packages of an installation, in the folder `name`.
fn make(installation: &Path, name: &str) -> Made {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    // If there is a folder of an earlier run, it is removed.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let packages =
        package::pack(installation, &folder, Compression::Quick).unwrap_or_else(|e| panic!("{e}"));
    Made { folder, packages }
}

/// Returns the packages of the shared installation.
fn made() -> &'static Made {
    static MADE: OnceLock<Made> = OnceLock::new();
    MADE.get_or_init(|| make(installation(), "packages"))
}

/// Returns the packages of an installation that is compiled and linked like the distributed ones.
fn shipped() -> &'static Made {
    static MADE: OnceLock<Made> = OnceLock::new();
    MADE.get_or_init(|| make(shipped_installation(), "packages-shipped"))
}

/// Runs a command and returns its outcome; panics if it fails.
fn output(command: &mut Command) -> Outcome {
    process::output(command, LIMIT).unwrap_or_else(|e| panic!("{e}"))
}
