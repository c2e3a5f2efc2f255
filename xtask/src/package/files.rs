//! Prepares a package's files: copies, strips, determines the required glibc.

use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::{PackageError, about};
use crate::process;

/// Time limit for `readelf`, which reads the headers of all files.
const READING: Duration = Duration::from_secs(60);

/// Copies an installation without debug information, which is most of its size.
pub fn stripped(prefix: &Path, to: &Path) -> Result<(), PackageError> {
    if to.exists() {
        fs::remove_dir_all(to).map_err(about(to))?;
    }
    copy(prefix, Path::new(""), to, &|_| true)?;
    let mut binaries = Vec::new();
    find_binaries(to, &mut binaries)?;
    // mpirun keeps its debug information: debuggers need the type of its process table.
    binaries.retain(|file| !file.ends_with("bin/mpirun"));
    let mut strip = Command::new("strip");
    strip.arg("--strip-debug").args(&binaries);
    process::run(&mut strip).map_err(|reason| PackageError::Tool {
        what: "stripped copy",
        reason,
    })
}

/// Returns the version of the GNU C library that the files below a folder require:
/// the highest version of their referenced symbols (`GLIBC_2.34`).
pub fn needed_glibc(folder: &Path) -> Result<(u32, u32), PackageError> {
    let mut binaries = Vec::new();
    find_binaries(folder, &mut binaries)?;
    let mut readelf = Command::new("readelf");
    readelf.arg("--version-info").arg("--wide").args(&binaries);
    let said = process::output(&mut readelf, READING).map_err(|reason| PackageError::Tool {
        what: "version of the C library",
        reason,
    })?;
    Ok(greatest_glibc(&said.stdout))
}

fn greatest_glibc(versions: &str) -> (u32, u32) {
    let words = versions.split_whitespace();
    let named = words.filter_map(|word| {
        let (major, minor) = word.strip_prefix("GLIBC_")?.split_once('.')?;
        let minor = minor.split('.').next()?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    });
    named.max().unwrap_or((2, 0))
}

/// Finds the programs and libraries below a folder by their magic bytes.
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

/// Copies those files and links of an installation that belong to the package.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        let said = "0x0010: Name: GLIBC_2.9  Flags: none\n Name: GLIBC_2.34 Flags: none\n Name: GLIBC_2.3.4 x\n Name: GLIBC_PRIVATE\n";
        assert_eq!(greatest_glibc(said), (2, 34));
        assert_eq!(greatest_glibc("none"), (2, 0));
    }
}
