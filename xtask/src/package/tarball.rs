//! Builds a relocatable tar archive of an installation.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Compression, PackageError, VERSION};
use crate::process;

/// Packs an installation as one top-level folder, without the name and the id of its owner.
pub fn tarball(
    prefix: &Path,
    out: &Path,
    compression: Compression,
) -> Result<PathBuf, PackageError> {
    let name = format!("portcullis-{VERSION}-{}-linux", std::env::consts::ARCH);
    let file = out.join(format!("{name}.tar.gz"));
    let mut tar = Command::new("tar");
    tar.arg("--create")
        .arg(match compression {
            Compression::Usual => "--gzip",
            Compression::Quick => "--use-compress-program=gzip -1",
        })
        .arg("--file")
        .arg(&file)
        .args(["--owner=0", "--group=0", "--numeric-owner", "--sort=name"])
        .arg(format!("--transform=s,^\\.,{name},"))
        .arg("--directory")
        .arg(prefix)
        .arg(".");
    process::run(&mut tar).map_err(|reason| PackageError::Tool {
        what: "archive",
        reason,
    })?;
    Ok(file)
}
