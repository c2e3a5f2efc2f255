//! Path of this relocatable installation, derived from the path of the running program.

use mpi_base::environment;
use mpi_base::param::Files;
use std::path::{Path, PathBuf};

/// Returns `PREFIX` if this program is `PREFIX/bin/NAME`, else `None`.
pub fn prefix() -> Option<PathBuf> {
    let exe = std::env::current_exe().ok()?;
    let bin = exe.parent()?;
    (bin.file_name()? == "bin").then(|| bin.parent().map(Path::to_path_buf))?
}

/// Returns the parameter files of the user and of this installation.
pub fn parameter_files() -> Files {
    let home = environment::var("HOME").filter(|home| !home.is_empty());
    Files::standard(home.as_deref().map(Path::new), prefix().as_deref())
}
