//! Downloads the source archive of a Debian package from the mirror that this machine uses.
//!
//! Most machines have no `deb-src` lines. This module derives such lines from the sources of binary
//! packages and passes them to one apt command, with private folders for apt's state.
//! Only the upstream archive is fetched; apt verifies its hash against the signed index.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::process::{self, ProcessError};
use crate::workspace;

/// The reason why the source could not be fetched or unpacked.
#[derive(Debug)]
pub enum SourceError {
    /// apt or tar could not be started, failed or timed out.
    Process(ProcessError),
    /// A folder or a file could not be created or read.
    File {
        /// The file or folder.
        path: PathBuf,
        /// The system error.
        reason: std::io::Error,
    },
    /// `apt-get source` succeeded, but the archive is missing.
    None {
        /// The name of the package.
        package: &'static str,
        /// The folder in which the archive was expected.
        folder: PathBuf,
    },
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process(error) => error.fmt(f),
            Self::File { path, reason } => write!(f, "{}: {reason}", path.display()),
            Self::None { package, folder } => write!(
                f,
                "apt-get has put no {package}_*.orig.tar.* into {}",
                folder.display()
            ),
        }
    }
}

impl std::error::Error for SourceError {}

fn file(path: &Path) -> impl FnOnce(std::io::Error) -> SourceError {
    move |reason| SourceError::File {
        path: path.to_owned(),
        reason,
    }
}

/// Returns the path of a package's upstream archive; fetches the archive if it is missing.
pub fn archive(package: &'static str) -> Result<PathBuf, SourceError> {
    let folder = workspace::target().join(package);
    if let Some(archive) = fetched(package, &folder)? {
        return Ok(archive);
    }
    let apt = folder.join("apt");
    for kept in ["lists/partial", "cache/archives/partial"] {
        let kept = apt.join(kept);
        fs::create_dir_all(&kept).map_err(file(&kept))?;
    }
    let sources = apt.join("sources.list");
    fs::write(&sources, deb_src()?).map_err(file(&sources))?;
    let apt_get = || {
        let mut command = Command::new("apt-get");
        let option = |name: &str, value: &Path| format!("{name}={}", value.display());
        command
            .arg("-qq")
            .args(["-o", &option("Dir::Etc::SourceList", &sources)])
            .args(["-o", "Dir::Etc::SourceParts=-"])
            .args(["-o", &option("Dir::State::Lists", &apt.join("lists"))])
            .args(["-o", &option("Dir::Cache", &apt.join("cache"))])
            .args(["-o", "Acquire::Languages=none"])
            // apt's sandbox user cannot write into the user's folder.
            .args(["-o", "APT::Sandbox::User=root"])
            .current_dir(&folder);
        command
    };
    let limit = Duration::from_secs(300);
    process::output(apt_get().arg("update"), limit).map_err(SourceError::Process)?;
    let fetch = ["source", "--download-only", "--tar-only", package];
    process::output(apt_get().args(fetch), limit).map_err(SourceError::Process)?;
    fetched(package, &folder)?.ok_or(SourceError::None { package, folder })
}

fn fetched(package: &str, folder: &Path) -> Result<Option<PathBuf>, SourceError> {
    fs::create_dir_all(folder).map_err(file(folder))?;
    for entry in fs::read_dir(folder).map_err(file(folder))? {
        let path = entry.map_err(file(folder))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with(&format!("{package}_")) && name.contains(".orig.tar.") {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

/// Returns `deb-src` lines for this machine's binary package sources.
fn deb_src() -> Result<String, SourceError> {
    let mut ask = Command::new("apt-get");
    ask.args(["indextargets", "--format"])
        .arg("deb-src $(SITE) $(RELEASE) $(COMPONENT)")
        .arg("Created-By: Packages");
    let told = process::output(&mut ask, Duration::from_secs(60)).map_err(SourceError::Process)?;
    let lines: BTreeSet<&str> = told.stdout.lines().collect();
    Ok(lines.into_iter().map(|line| format!("{line}\n")).collect())
}

/// Unpacks an archive into an empty folder, without its top folder; `part` is a tar pattern of files.
pub fn unpack(archive: &Path, folder: &Path, part: Option<&str>) -> Result<(), SourceError> {
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder).map_err(file(folder))?;
    let mut tar = Command::new("tar");
    tar.arg("-xf").arg(archive).arg("-C").arg(folder);
    tar.arg("--strip-components=1");
    if let Some(part) = part {
        tar.args(["--wildcards", part]);
    }
    process::output(&mut tar, Duration::from_secs(600)).map_err(SourceError::Process)?;
    Ok(())
}
