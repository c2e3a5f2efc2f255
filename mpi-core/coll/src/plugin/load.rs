//! Loading of a plugin file: reads its manifest, calls its entry point, and checks that its table agrees with the manifest.
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

/// The name of this framework: the names of plugin files begin with it.
pub const FRAMEWORK: &str = "coll";

/// The reason why a file or directory provides no component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// A directory that the user's settings name is not readable.
    Directory {
        reason: String,
    },
    /// Users that are not trusted can write the file or its folder.
    Untrusted(Untrusted),
    /// The file's name does not have the form of a plugin file's name.
    FileName,
    /// The manifest is missing, or it is for another library or version.
    Manifest(ManifestError),
    /// The file cannot be opened or has no entry point.
    Open(OpenError),
    Table(TableError),
    /// The table contains another name or version than the manifest.
    OtherName {
        table: String,
        manifest: String,
    },
    /// The file's version is not newer than that of the component already selected under the same name.
    NotNewer {
        name: String,
        version: String,
        other: String,
        other_version: String,
    },
    /// The name is that of a component of the engine, which files must not replace.
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

/// Reads the manifest of a file and checks that it is for this framework and `component`.
///
/// Also returns the identity of the file, with which [`open()`] detects that the file was replaced.
pub fn manifest(file: &Path, component: &str) -> Result<(Manifest, Option<Identity>), LoadError> {
    let before = Identity::of(file);
    let manifest = Manifest::of(file).map_err(LoadError::Manifest)?;
    let checked = manifest.check(&abi::INTERFACE, (FRAMEWORK, component));
    checked.map_err(LoadError::Manifest)?;
    Ok((manifest, before))
}

/// Opens a file and checks its table. During this call, the process's state page, which `mpirun` reads, shows the file's name.
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
    // SAFETY: by `plugin.h`, the function takes no arguments and returns a table that stays valid; the file is never closed.
    let table = guarded(&owner, abi::SYMBOL, || unsafe { entry() });
    // SAFETY: by `plugin.h`, the table and all that it points to never change.
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
