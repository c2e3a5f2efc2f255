//! hpcc's source, from the Debian mirror that this machine uses, and its build.
//!
//! Most machines have no `deb-src` lines, so apt is given some for one command: those of its own binary packages' places,
//! with folders of ours for everything that it would keep.
//! Only the authors' archive is fetched, and apt checks it against the signed index.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::{HpccError, file};
use crate::process;
use crate::workspace;

/// The one file that calls what MPI-3 removed, and what replaced it.
const OLD: &str = "hpl/src/comm/HPL_packL.c";
const RENAMED: [(&str, &str); 2] = [
    ("MPI_Address(", "MPI_Get_address("),
    ("MPI_Type_struct(", "MPI_Type_create_struct("),
];

const MAKE: &str = include_str!("Make.portcullis");

fn folder() -> PathBuf {
    workspace::target().join("hpcc")
}

/// The authors' archive; fetched unless it is there.
pub fn archive() -> Result<PathBuf, HpccError> {
    let folder = folder();
    if let Some(archive) = fetched(&folder)? {
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
            // The folder belongs to whoever builds, so apt's own user could not write there.
            .args(["-o", "APT::Sandbox::User=root"])
            .current_dir(&folder);
        command
    };
    let limit = Duration::from_secs(300);
    process::output(apt_get().arg("update"), limit).map_err(HpccError::Process)?;
    let fetch = ["source", "--download-only", "--tar-only", "hpcc"];
    process::output(apt_get().args(fetch), limit).map_err(HpccError::Process)?;
    fetched(&folder)?.ok_or(HpccError::NoSource { folder })
}

fn fetched(folder: &Path) -> Result<Option<PathBuf>, HpccError> {
    fs::create_dir_all(folder).map_err(file(folder))?;
    for entry in fs::read_dir(folder).map_err(file(folder))? {
        let path = entry.map_err(file(folder))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with("hpcc_") && name.contains(".orig.tar.") {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

/// The places of this machine's binary packages, as places of sources.
fn deb_src() -> Result<String, HpccError> {
    let mut ask = Command::new("apt-get");
    ask.args(["indextargets", "--format"])
        .arg("deb-src $(SITE) $(RELEASE) $(COMPONENT)")
        .arg("Created-By: Packages");
    let told = process::output(&mut ask, Duration::from_secs(60)).map_err(HpccError::Process)?;
    let lines: BTreeSet<&str> = told.stdout.lines().collect();
    Ok(lines.into_iter().map(|line| format!("{line}\n")).collect())
}

/// The program, built with the `mpicc` in `bin` unless that was done since `mpicc` changed.
pub fn build(archive: &Path, library: &str, bin: &Path) -> Result<PathBuf, HpccError> {
    let folder = folder().join(library.replace(' ', "-").to_lowercase());
    let program = folder.join("hpcc");
    let mpicc = bin.join("mpicc");
    let made = |path: &Path| fs::metadata(path).and_then(|m| m.modified()).ok();
    if let (Some(program_made), Some(mpicc_made)) = (made(&program), made(&mpicc))
        && program_made > mpicc_made
    {
        return Ok(program);
    }
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(file(&folder))?;
    let limit = Duration::from_secs(600);
    let mut unpack = Command::new("tar");
    unpack.arg("-xf").arg(archive).arg("-C").arg(&folder);
    unpack.arg("--strip-components=1");
    process::output(&mut unpack, limit).map_err(HpccError::Process)?;
    let old = folder.join(OLD);
    let text = fs::read_to_string(&old).map_err(file(&old))?;
    let text = RENAMED
        .iter()
        .fold(text, |text, (old, new)| text.replace(old, new));
    fs::write(&old, text).map_err(file(&old))?;
    let make = folder.join("hpl/Make.portcullis");
    fs::write(&make, MAKE).map_err(file(&make))?;
    process::output(
        Command::new("make")
            .args(["arch=portcullis", "-j2"])
            .arg(format!("MPICC={}", mpicc.display()))
            .current_dir(&folder),
        limit,
    )
    .map_err(HpccError::Process)?;
    Ok(program)
}
