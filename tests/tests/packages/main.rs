//! Packages: what is in them runs where they are unpacked and where a system installs them.

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

/// For installing a package and running four small programs.
const LIMIT: Duration = Duration::from_secs(240);

/// mpi4py as its authors pack it.
const MPI4PY: &str = "mpi4py==4.1.2";

/// How many ranks there are, and of which library, said by mpi4py.
const HELLO: &str =
    "from mpi4py import MPI; c = MPI.COMM_WORLD; print(c.allreduce(1), MPI.Get_library_version())";

/// The packages, and the folder in which they and nothing else lie.
struct Made {
    folder: PathBuf,
    packages: Packages,
}

/// Those of an installation, made anew in a folder of this name.
fn make(installation: &Path, name: &str) -> Made {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    // Of an earlier run; where there is none, there is nothing to remove.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let packages =
        package::pack(installation, &folder, Compression::Quick).unwrap_or_else(|e| panic!("{e}"));
    Made { folder, packages }
}

/// Of the installation that all tests share.
fn made() -> &'static Made {
    static MADE: OnceLock<Made> = OnceLock::new();
    MADE.get_or_init(|| make(installation(), "packages"))
}

/// Of one that is compiled and linked as those are that others get.
fn shipped() -> &'static Made {
    static MADE: OnceLock<Made> = OnceLock::new();
    MADE.get_or_init(|| make(shipped_installation(), "packages-shipped"))
}

/// What a program says that has to end well.
fn output(command: &mut Command) -> Outcome {
    process::output(command, LIMIT).unwrap_or_else(|e| panic!("{e}"))
}
