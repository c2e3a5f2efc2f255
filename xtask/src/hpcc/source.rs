//! Adapts hpcc's source to MPI-3.0 and builds it with an `mpicc`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::{HpccError, file};
use crate::debian_source;
use crate::process;
use crate::workspace;

/// The only source file that calls functions removed by MPI-3.0; `RENAMED` has their replacements.
const OLD: &str = "hpl/src/comm/HPL_packL.c";
const RENAMED: [(&str, &str); 2] = [
    ("MPI_Address(", "MPI_Get_address("),
    ("MPI_Type_struct(", "MPI_Type_create_struct("),
];

const MAKE: &str = include_str!("Make.portcullis");

/// Returns the upstream archive; fetches it if it is missing.
pub fn archive() -> Result<PathBuf, HpccError> {
    debian_source::archive("hpcc").map_err(HpccError::Source)
}

/// Builds hpcc with the `mpicc` in `bin` unless the program is newer than `mpicc`;
/// returns the program's path.
pub fn build(archive: &Path, library: &str, bin: &Path) -> Result<PathBuf, HpccError> {
    let folder = workspace::target()
        .join("hpcc")
        .join(library.replace(' ', "-").to_lowercase());
    let program = folder.join("hpcc");
    let mpicc = bin.join("mpicc");
    let made = |path: &Path| fs::metadata(path).and_then(|m| m.modified()).ok();
    if let (Some(program_made), Some(mpicc_made)) = (made(&program), made(&mpicc))
        && program_made > mpicc_made
    {
        return Ok(program);
    }
    debian_source::unpack(archive, &folder, None).map_err(HpccError::Source)?;
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
        Duration::from_secs(600),
    )
    .map_err(HpccError::Process)?;
    Ok(program)
}
