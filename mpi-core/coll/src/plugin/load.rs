//! Loading of a plugin file of this framework: its manifest, its entry point, and the check that its table agrees with the manifest.
#![allow(unsafe_code)]

use super::abi;
use super::table::{Plugin, TableError};
use mpi_base::plugin_file::open::Identity;
use mpi_base::plugin_file::{
    Manifest, ManifestError, OpenError, Untrusted, guarded, open, reported,
};
use mpi_base::state::{FileCall, StatePage};
use std::ffi::c_void;
use std::fmt;
use std::path::Path;

/// The framework's name in the names of plugin files.
pub const FRAMEWORK: &str = "coll";

/// Why a file or directory provides no component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// A directory that the user named is not readable.
    Directory {
        reason: String,
    },
    /// Users that are not trusted can write the file or its folder.
    Untrusted(Untrusted),
    /// The file's name is not that of a component.
    FileName,
    /// The manifest is missing, or it is for another library.
    Manifest(ManifestError),
    /// The file cannot be opened or has no entry point.
    Open(OpenError),
    Table(TableError),
    /// The table has another name or version than the manifest.
    OtherName {
        table: String,
        manifest: String,
    },
    /// The file is not newer than the selected component of the same name.
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
            LoadError::Untrusted(why) => why.fmt(f),
            LoadError::FileName => write!(
                f,
                "its name is not {FRAMEWORK}_COMPONENT.so or btl_COMPONENT.so, so it is not opened; COMPONENT is the name in its table"
            ),
            LoadError::Manifest(e) => e.fmt(f),
            LoadError::Open(e) => e.fmt(f),
            LoadError::Table(e) => e.fmt(f),
            LoadError::OtherName { table, manifest } => write!(
                f,
                "its table is that of the component {table}, and its manifest says {manifest}"
            ),
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

/// Reads and checks the manifest of a file that is named after this framework and `component`.
///
/// Also returns the identity of the file, by which [`open()`] detects that the file was replaced.
pub fn manifest(file: &Path, component: &str) -> Result<(Manifest, Option<Identity>), LoadError> {
    let before = Identity::of(file);
    let manifest = Manifest::of(file).map_err(LoadError::Manifest)?;
    let checked = manifest.check(&abi::INTERFACE, (FRAMEWORK, component));
    checked.map_err(LoadError::Manifest)?;
    Ok((manifest, before))
}

/// Opens a file and checks its table; meanwhile the state page contains the file's name.
pub fn open(
    file: &Path,
    manifest: &Manifest,
    before: Option<Identity>,
    page: Option<&StatePage>,
) -> Result<Plugin, LoadError> {
    let shown = file.to_string_lossy();
    reported(page, FileCall::PluginStart, &shown, || {
        start(file, manifest, before)
    })
}

fn start(file: &Path, manifest: &Manifest, before: Option<Identity>) -> Result<Plugin, LoadError> {
    let entry = open::entry(file, before, abi::SYMBOL).map_err(LoadError::Open)?;
    // SAFETY: `plugin.h` fixes the type of the symbol of this name, and a function has the size of a pointer.
    let entry = unsafe { std::mem::transmute::<*const c_void, abi::Entry>(entry) };
    let shown = file.to_string_lossy();
    let owner = (&*manifest.component, &*shown);
    // SAFETY: `plugin.h`: the function takes no arguments and returns a table that stays valid; the file is never closed.
    let table = guarded(&owner, abi::SYMBOL, || unsafe { entry() });
    // SAFETY: `plugin.h`: the table and all that it points to stay unchanged.
    let plugin = unsafe { Plugin::check(table) }.map_err(LoadError::Table)?;
    let (of_table, of_manifest) = (
        (plugin.name, plugin.version),
        (&*manifest.component, &*manifest.version),
    );
    if of_table != of_manifest {
        let shown = |(name, version): (&str, &str)| format!("{name} {version}");
        return Err(LoadError::OtherName {
            table: shown(of_table),
            manifest: shown(of_manifest),
        });
    }
    Ok(plugin)
}
