//! Search for the MPI library to measure.

use mpi_base::environment;
use std::fmt;
use std::path::{Path, PathBuf};

/// The file name of the standard ABI's library, which is preferred to [`OPEN_MPI`].
pub const STANDARD: &str = "libmpi_abi.so.1";
/// The file name of Open MPI's library; Open MPI 5 has no library of the standard ABI.
pub const OPEN_MPI: &str = "libmpi.so.40";

/// The error if no library was found.
#[derive(Debug)]
pub enum NotFound {
    /// The named file or folder does not exist.
    Missing(PathBuf),
    /// None of these folders has a library.
    Searched(Vec<PathBuf>),
}

impl fmt::Display for NotFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(path) => write!(f, "there is no file or folder {}", path.display()),
            Self::Searched(folders) => {
                let places: Vec<String> = folders.iter().map(|p| p.display().to_string()).collect();
                write!(
                    f,
                    "found neither {STANDARD} nor {OPEN_MPI} in {}; name the library with --lib PATH",
                    places.join(", ")
                )
            }
        }
    }
}

impl std::error::Error for NotFound {}

/// Returns the library of `--lib`, or the first one in `LD_LIBRARY_PATH`.
/// Without `--lib` and `LD_LIBRARY_PATH`, returns the library beside this program.
///
/// If `named` is a folder, it may be the library's own folder or the installation prefix.
pub fn library(named: Option<&Path>) -> Result<PathBuf, NotFound> {
    let folders = match named {
        Some(path) if path.is_dir() => vec![path.to_owned(), path.join("lib")],
        // The dynamic loader searches for a name without a folder.
        Some(path) if path.exists() || path.components().count() == 1 => {
            return Ok(path.to_owned());
        }
        Some(path) => return Err(NotFound::Missing(path.to_owned())),
        None => search_path(),
    };
    in_folders(&folders).ok_or(NotFound::Searched(folders))
}

/// Returns the library in a folder or installation prefix.
pub fn in_installation(folder: &Path) -> Result<PathBuf, NotFound> {
    match folder.exists() {
        true => library(Some(folder)),
        false => Err(NotFound::Missing(folder.to_owned())),
    }
}

/// Finds the library in `folders`; a standard ABI library in any folder precedes Open MPI's.
fn in_folders(folders: &[PathBuf]) -> Option<PathBuf> {
    [STANDARD, OPEN_MPI]
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)))
        .find(|file| file.is_file())
}

fn search_path() -> Vec<PathBuf> {
    let listed = environment::var("LD_LIBRARY_PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&listed)
        .filter(|p| !p.as_os_str().is_empty())
        .collect();
    folders.extend(beside_this_program());
    folders
}

/// Returns the folder `../lib` relative to this program's folder.
pub fn beside_this_program() -> Option<PathBuf> {
    Some(
        std::env::current_exe()
            .ok()?
            .parent()?
            .parent()?
            .join("lib"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_standard_abi_later_in_the_path_beats_open_mpi_earlier() {
        let root = tempfile::tempdir().unwrap();
        let (a, b) = (root.path().join("a"), root.path().join("b"));
        for (folder, file) in [(&a, OPEN_MPI), (&b, STANDARD)] {
            std::fs::create_dir(folder).unwrap();
            std::fs::write(folder.join(file), b"").unwrap();
        }
        assert_eq!(in_folders(&[a.clone(), b.clone()]), Some(b.join(STANDARD)));
        assert_eq!(in_folders(std::slice::from_ref(&a)), Some(a.join(OPEN_MPI)));
    }

    #[test]
    fn a_folder_may_be_the_one_that_a_library_was_installed_to() {
        let root = tempfile::tempdir().unwrap();
        let lib = root.path().join("lib");
        std::fs::create_dir(&lib).unwrap();
        std::fs::write(lib.join(OPEN_MPI), b"").unwrap();
        for named in [root.path(), &lib, &lib.join(OPEN_MPI)] {
            assert_eq!(library(Some(named)).unwrap(), lib.join(OPEN_MPI));
        }
    }

    #[test]
    fn a_folder_without_a_library_is_named_in_the_refusal() {
        let root = tempfile::tempdir().unwrap();
        let refusal = library(Some(root.path())).unwrap_err().to_string();
        assert!(
            refusal.contains(&root.path().display().to_string()),
            "{refusal}"
        );
    }
}
