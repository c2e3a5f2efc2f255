//! Plugin discovery and loading.
//!
//! Every `*.so` of the plugin directories is opened with `RTLD_NOW | RTLD_LOCAL`: a missing symbol is reported at once and not in the middle of a run,
//! and a plugin's symbols are invisible to other files.
//! A file is never closed, because its constructors, thread-local storage and tables may be referred to until the process ends.
#![allow(unsafe_code)]

use super::abi;
use super::table::{Plugin, TableError};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use mpi_base::installation::PRELOAD;
use std::fmt;
use std::path::{Path, PathBuf};

/// Why a file or directory provides no component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// A directory that the user named is not readable.
    Directory {
        reason: String,
    },
    /// The dynamic linker rejects the file.
    Open {
        reason: String,
    },
    /// The file is not a plugin.
    NoSymbol,
    Table(TableError),
    /// The file is not newer than the component of that name that was taken before.
    NotNewer {
        name: String,
        version: String,
        other: String,
        other_version: String,
    },
    /// The name belongs to a component of the engine.
    Reserved {
        name: String,
    },
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Directory { reason } => write!(f, "the directory cannot be read: {reason}"),
            LoadError::Open { reason } => write!(f, "it cannot be loaded: {reason}"),
            LoadError::NoSymbol => write!(
                f,
                "it does not export {}, so it is not a plugin",
                abi::SYMBOL
            ),
            LoadError::Table(e) => e.fmt(f),
            LoadError::NotNewer {
                name,
                version,
                other,
                other_version,
            } => write!(
                f,
                "its component {name} {version} is not newer than {name} {other_version} from {other}; mca_component_prefer {name} would take it"
            ),
            LoadError::Reserved { name } => {
                write!(
                    f,
                    "the name {name} belongs to a component that is part of the library and cannot be replaced"
                )
            }
        }
    }
}

impl std::error::Error for LoadError {}

/// Opens a file and checks its table.
///
/// This runs foreign code: every user with write access to a plugin directory is trusted with the process,
/// as the dynamic linker trusts every user with write access to a library directory.
pub fn open(file: &Path) -> Result<Plugin, LoadError> {
    // SAFETY: running the file's constructors is intended; the plugin directories are trusted, see the function's comment.
    let library = unsafe { Library::open(Some(file), RTLD_NOW | RTLD_LOCAL) }.map_err(|e| {
        LoadError::Open {
            reason: linker_text(&e),
        }
    })?;
    // SAFETY: `plugin.h` fixes the type of the symbol of this name.
    let entry = unsafe { library.get::<abi::Entry>(abi::SYMBOL.as_bytes()) }.map(|symbol| *symbol);
    std::mem::forget(library);
    let entry = entry.map_err(|_| LoadError::NoSymbol)?;
    // SAFETY: `plugin.h`: the function takes no arguments and returns a table that stays valid; the file is never closed.
    unsafe { Plugin::check(entry()) }.map_err(LoadError::Table)
}

/// The dynamic linker's error text, which libloading keeps in the source of its error.
fn linker_text(error: &libloading::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), |inner| inner.to_string())
}

/// The plugin files of a directory, sorted by name, without the installation's `LD_PRELOAD` library.
pub fn files(directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        let is_ours = path.file_name().is_some_and(|name| name == PRELOAD);
        if path.extension().is_some_and(|e| e == "so") && !is_ours {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
