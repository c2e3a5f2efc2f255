//! A Python wheel: `pip install` adds `mpirun`, `mpicc`,
//! `mpi.h` and the libraries to an environment.
//!
//! The files have the layout of an installation, below the environment's prefix.
//! A wheel cannot contain links, so each link is replaced by its target.
//! Python scripts write the archive (`wheel_archive.py`, `wheel.py`), as Python is present anyway.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Compression, PackageError, VERSION, files};
use crate::process;

const SCRIPT: &str = concat!(include_str!("wheel_archive.py"), include_str!("wheel.py"));

/// Packs an installation as a wheel for every Python 3 of this system.
pub fn wheel(prefix: &Path, out: &Path, compression: Compression) -> Result<PathBuf, PackageError> {
    let tag = tag(prefix)?;
    let file = out.join(format!("portcullis-{VERSION}-{tag}.whl"));
    write(SCRIPT, prefix, &file, &tag, compression)?;
    Ok(file)
}

/// Returns the platform tag of a wheel with the files of this folder.
pub(super) fn tag(folder: &Path) -> Result<String, PackageError> {
    let (major, minor) = files::needed_glibc(folder)?;
    // pip requires at least this version of the C library (PEP 600).
    Ok(format!(
        "py3-none-manylinux_{major}_{minor}_{}",
        std::env::consts::ARCH
    ))
}

/// Runs the script that writes a wheel from this folder.
pub(super) fn write(
    script: &str,
    folder: &Path,
    file: &Path,
    tag: &str,
    compression: Compression,
) -> Result<(), PackageError> {
    let mut python = Command::new("python3");
    python
        .args(["-c", script])
        .arg(folder)
        .arg(file)
        .args([VERSION, tag])
        .arg(match compression {
            // The value selects zlib's default level.
            Compression::Usual => "-1",
            Compression::Quick => "1",
        });
    process::run(&mut python).map_err(|reason| PackageError::Tool {
        what: "wheel",
        reason,
    })
}
