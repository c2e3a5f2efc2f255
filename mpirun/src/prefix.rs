//! The path of this installation, derived from the running program, so that the installation may be moved.

use mpi_base::environment;
use mpi_base::param::Files;
use std::path::{Path, PathBuf};

/// Returns the installation: `PREFIX` of `PREFIX/bin/program`, if this program is in a `bin`.
pub fn prefix() -> Option<PathBuf> {
    let exe = std::env::current_exe().ok()?;
    let bin = exe.parent()?;
    (bin.file_name()? == "bin").then(|| bin.parent().map(Path::to_path_buf))?
}

/// Returns the parameter files of this user and this installation.
pub fn parameter_files() -> Files {
    let home = environment::var("HOME").filter(|home| !home.is_empty());
    Files::standard(home.as_deref().map(Path::new), prefix().as_deref())
}
