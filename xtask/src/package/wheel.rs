//! Builds a Python wheel: `pip install` adds `mpirun`, `mpicc`,
//! `mpi.h` and the libraries to an environment.
//!
//! The files have the layout of an installation, below the environment's prefix.
//! A wheel cannot contain links, so each link is replaced by a copy of its target.
//! Python scripts (`wheel_archive.py`, `wheel.py`) write the archive, because users of a wheel have Python.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Compression, PackageError, VERSION, files};
use crate::process;

const SCRIPT: &str = concat!(include_str!("wheel_archive.py"), include_str!("wheel.py"));

/// Packs an installation as a wheel that every Python 3 on this system can install.
pub fn wheel(prefix: &Path, out: &Path, compression: Compression) -> Result<PathBuf, PackageError> {
    let tag = tag(prefix)?;
    let file = out.join(format!("portcullis-{VERSION}-{tag}.whl"));
    write(SCRIPT, prefix, &file, &tag, compression)?;
    Ok(file)
}

/// Returns the platform tag of a wheel that contains the files of this folder.
pub(super) fn tag(folder: &Path) -> Result<String, PackageError> {
    let (major, minor) = files::needed_glibc(folder)?;
    // With this tag, pip requires at least this version of the C library (PEP 600).
    Ok(format!(
        "py3-none-manylinux_{major}_{minor}_{}",
        std::env::consts::ARCH
    ))
}

/// Runs the Python script that packs this folder as a wheel.
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
