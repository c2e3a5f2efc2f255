//! Plugin discovery and loading.
//!
//! A file is named after its framework and its component, `coll_star.so`, so that the selection is applied before anything is opened:
//! opening a file runs its constructors.
//! The others are opened with `RTLD_NOW | RTLD_LOCAL`: a missing symbol is reported at once and not in the middle of a run,
//! and a plugin's symbols are invisible to other files.
//! A file is never closed, because its constructors, thread-local storage and tables may be referred to until the process ends.
#![allow(unsafe_code)]

use super::abi;
use super::table::{Plugin, TableError};
use super::trust::Untrusted;
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use mpi_base::installation::PRELOAD;
use std::ffi::CStr;
use std::fmt;
use std::mem::MaybeUninit;
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
    /// Others than trusted users can write the file or its folder.
    Untrusted(Untrusted),
    /// The file's name is not that of a component of this framework.
    FileName,
    /// The component has another name than the file.
    OtherName {
        name: String,
    },
    /// The file is not a plugin.
    NoSymbol,
    /// The symbol is that of a library which the file needs.
    SymbolOfOther {
        file: String,
    },
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
            LoadError::Untrusted(why) => why.fmt(f),
            LoadError::FileName => write!(
                f,
                "its name is not {PREFIX}COMPONENT.so, so it is not opened; COMPONENT is the name in its table"
            ),
            LoadError::OtherName { name } => write!(
                f,
                "its component is called {name}, so the file must be called {PREFIX}{name}.so"
            ),
            LoadError::SymbolOfOther { file } => write!(
                f,
                "it does not export {}, and the one of {file}, which it needs, is not its own, so it is not a plugin",
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

/// The beginning of the names of this framework's files.
const PREFIX: &str = "coll_";

/// Returns the name of the component in a file, from the file's name.
pub fn component_of(file: &Path) -> Option<&str> {
    let stem = file.file_stem()?.to_str()?;
    stem.strip_prefix(PREFIX).filter(|name| !name.is_empty())
}

/// Opens a file and checks its table.
///
/// This runs foreign code: [`super::trust`] has found that only trusted users can write the file.
pub fn open(file: &Path) -> Result<Plugin, LoadError> {
    // SAFETY: running the file's constructors is intended; the file is trusted, see the function's comment.
    let library = unsafe { Library::open(Some(file), RTLD_NOW | RTLD_LOCAL) }.map_err(|e| {
        LoadError::Open {
            reason: linker_text(&e),
        }
    })?;
    // SAFETY: `plugin.h` fixes the type of the symbol of this name.
    let entry = unsafe { library.get::<abi::Entry>(abi::SYMBOL.as_bytes()) }.map(|symbol| *symbol);
    let base = base_of(library);
    let entry = entry.map_err(|_| LoadError::NoSymbol)?;
    // The look-up also searches the libraries that the file needs.
    if let Some((file, other)) = place_of(entry)
        && base != Some(other)
    {
        return Err(LoadError::SymbolOfOther { file });
    }
    // SAFETY: `plugin.h`: the function takes no arguments and returns a table that stays valid; the file is never closed.
    unsafe { Plugin::check(entry()) }.map_err(LoadError::Table)
}

/// Returns the address to which a file is loaded; the file stays open.
fn base_of(library: Library) -> Option<usize> {
    let handle = library.into_raw();
    let mut map: *mut LinkMap = std::ptr::null_mut();
    // SAFETY: the handle is that of an open file, and the request (dlinfo(3)) writes one pointer.
    let done = unsafe { libc::dlinfo(handle, libc::RTLD_DI_LINKMAP, (&raw mut map).cast()) };
    // SAFETY: `dlinfo` succeeded, so `map` is the file's entry in the linker's list, which lives as long as the file is open.
    (done == 0).then(|| unsafe { (*map).address })
}

/// The first member of glibc's and musl's `struct link_map` (link.h).
#[repr(C)]
struct LinkMap {
    address: usize,
}

/// Returns the path and the load address of the file that contains a function.
fn place_of(entry: abi::Entry) -> Option<(String, usize)> {
    let mut found = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: `dladdr` takes any address and writes a local.
    let known = unsafe { libc::dladdr(entry as *const _, found.as_mut_ptr()) } != 0;
    // SAFETY: all bytes are initialised; zero is a value of each member.
    let found = unsafe { found.assume_init() };
    if !known || found.dli_fname.is_null() {
        return None;
    }
    // SAFETY: `dladdr` succeeded, so this is the linker's string, which lives as long as the file is loaded.
    let file = unsafe { CStr::from_ptr(found.dli_fname) };
    Some((
        file.to_string_lossy().into_owned(),
        found.dli_fbase as usize,
    ))
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
