//! Files on their way into a package.

use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{PackageError, about};
use crate::process;

/// A copy of an installation without what only debuggers read, which is most of it.
pub fn stripped(prefix: &Path, to: &Path) -> Result<(), PackageError> {
    if to.exists() {
        fs::remove_dir_all(to).map_err(about(to))?;
    }
    copy(prefix, Path::new(""), to, &|_| true)?;
    let mut binaries = Vec::new();
    find_binaries(to, &mut binaries)?;
    let mut strip = Command::new("strip");
    strip.arg("--strip-debug").args(&binaries);
    process::run(&mut strip).map_err(|reason| PackageError::Tool {
        what: "stripped copy",
        reason,
    })
}

/// Programs and libraries below a folder, known by how they begin.
fn find_binaries(folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), PackageError> {
    for entry in fs::read_dir(folder).map_err(about(folder))? {
        let entry = entry.map_err(about(folder))?;
        let path = entry.path();
        let kind = entry.file_type().map_err(about(&path))?;
        if kind.is_dir() {
            find_binaries(&path, found)?;
        } else if kind.is_file() {
            let mut begin = Vec::new();
            let file = File::open(&path).map_err(about(&path))?;
            file.take(4).read_to_end(&mut begin).map_err(about(&path))?;
            if begin == b"\x7fELF" {
                found.push(path);
            }
        }
    }
    Ok(())
}

/// Copies those files and links of a folder that belong to the package.
pub fn copy(
    prefix: &Path,
    inside: &Path,
    to: &Path,
    has: &dyn Fn(&Path) -> bool,
) -> Result<(), PackageError> {
    let folder = prefix.join(inside);
    for entry in fs::read_dir(&folder).map_err(about(&folder))? {
        let entry = entry.map_err(about(&folder))?;
        let (from, inside) = (entry.path(), inside.join(entry.file_name()));
        let kind = entry.file_type().map_err(about(&from))?;
        if kind.is_dir() {
            copy(prefix, &inside, to, has)?;
            continue;
        }
        if !has(&inside) {
            continue;
        }
        let place = to.join(&inside);
        if let Some(parent) = place.parent() {
            fs::create_dir_all(parent).map_err(about(parent))?;
        }
        if kind.is_symlink() {
            let target = fs::read_link(&from).map_err(about(&from))?;
            symlink(target, &place).map_err(about(&place))?;
        } else {
            fs::copy(&from, &place).map_err(about(&from))?;
        }
    }
    Ok(())
}
