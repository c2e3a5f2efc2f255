//! A Python wheel: `pip install` puts `mpirun`, `mpicc`, `mpi.h` and the libraries into a Python environment.
//!
//! The files lie as they do in any installation, below the environment's prefix. Archives of this kind have no links, so a
//! link's place is taken by what it leads to. The archive is written by Python's own library (`wheel.py`), which has to be
//! there anyway.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Compression, PackageError, VERSION, files};
use crate::process;

const SCRIPT: &str = include_str!("wheel.py");

/// Packs an installation as a wheel for every Python 3 of this system.
pub fn wheel(prefix: &Path, out: &Path, compression: Compression) -> Result<PathBuf, PackageError> {
    let (major, minor) = files::needed_glibc(prefix)?;
    // pip installs it where the C library is of this version at least (PEP 600).
    let tag = format!(
        "py3-none-manylinux_{major}_{minor}_{}",
        std::env::consts::ARCH
    );
    let file = out.join(format!("portcullis-{VERSION}-{tag}.whl"));
    let mut python = Command::new("python3");
    python
        .args(["-c", SCRIPT])
        .arg(prefix)
        .arg(&file)
        .args([VERSION, &tag])
        .arg(match compression {
            // zlib's own choice.
            Compression::Usual => "-1",
            Compression::Quick => "1",
        });
    process::run(&mut python).map_err(|reason| PackageError::Tool {
        what: "wheel",
        reason,
    })?;
    Ok(file)
}
