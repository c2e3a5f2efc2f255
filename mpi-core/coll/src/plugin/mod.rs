//! Plugins: collective components loaded at run time, through C tables in both directions.
//!
//! The guarantee, which `include/portcullis/plugin.h` states for C programmers: a plugin is a file in a directory.
//! Neither the program nor the library is compiled or linked again, no symbol is resolved except the one that returns the plugin's table,
//! and every function slot is optional.
//!
//! | module | contents |
//! |---|---|
//! | [`abi`] | the tables, as in the header |
//! | `passed` | plugins that were skipped on purpose |
//! | `table` | validation of a foreign table |
//! | `trust` | which files and folders are opened: those that only trusted users can write |
//! | `load` | discovery and opening of files |
//! | `module_comm` | the communicator as a module sees it: the services in safe code |
//! | `memory` | the shared memory service |
//! | [`host`] | the services as a trait, and the C table over them that plugins get |
//! | `adapter` | a table as a component of the coll framework |
//! | [`guest`] | the plugin's side: writing a plugin in safe Rust |
//!
//! A built-in component uses the same tables as one from a file, so both share one code path and its tests.
//!
//! If a file contains a component that exists already, the newer version wins, and the built-in one if versions are equal;
//! `mca_component_prefer` always selects the file.
//! Files must not use the names of components of the engine itself.

pub mod abi;
mod adapter;
mod eureka;
pub mod guest;
pub mod host;
mod load;
mod memory;
mod module_comm;
mod passed;
mod shared_memory;
mod table;
#[cfg(test)]
mod tests;
mod trust;

pub use load::LoadError;
pub use passed::Passed;
pub use table::{Plugin, TableError};
pub use trust::Untrusted;

use crate::Component;
use crate::select::SELECTION;
use mpi_base::param::{About, Level, Param, Params, Selection};
use mpi_base::text;
use std::fmt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use trust::Trust;

/// The plugin directories.
pub static PATH: Param<String> = Param::new(
    "mca",
    "component",
    "path",
    "",
    Level::TUNER,
    "Directories, separated by colons, whose *.so files are loaded as plugins; by default lib/portcullis of the installation",
);

/// Plugins that replace built-in components regardless of version.
pub static PREFER: Param<String> = Param::new(
    "mca",
    "component",
    "prefer",
    "",
    Level::TUNER,
    "Names, separated by commas, of components that are loaded from the plugin directories even if the built-in ones have the same version",
);

/// The parameters of this module, for listings.
pub fn params() -> [&'static About; 2] {
    [PATH.about(), PREFER.about()]
}

/// Origin of a component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Linked into the library.
    BuiltIn,
    File(PathBuf),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::BuiltIn => f.write_str("the library itself"),
            Origin::File(path) => path.display().fmt(f),
        }
    }
}

/// A component that was selected, and the file that it is from.
pub struct Taken {
    pub plugin: Rc<Plugin>,
    pub origin: Origin,
}

/// A file or directory that provides no component, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    pub file: PathBuf,
    pub reason: LoadError,
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file.display(), self.reason)
    }
}

/// All plugins found, for the engine and for listings.
#[derive(Default)]
pub struct Catalogue {
    pub taken: Vec<Taken>,
    pub rejected: Vec<Rejected>,
    pub passed: Passed,
}

impl Catalogue {
    /// Collects the built-in components and those of the plugin directories.
    ///
    /// `usual` is the installation's plugin directory; files must not use `engine_names`.
    pub fn gather(
        built_in: &[guest::BuiltIn],
        engine_names: &[&str],
        params: &Params,
        usual: Option<&Path>,
    ) -> Catalogue {
        let mut catalogue = Catalogue::default();
        for table in built_in {
            // Built-in tables are checked by the tests of their crates.
            if let Ok(plugin) = table.check() {
                catalogue.taken.push(Taken {
                    plugin: Rc::new(plugin),
                    origin: Origin::BuiltIn,
                });
            }
        }
        let prefer = params.text(PREFER.about());
        // An invalid selection is reported when the components are selected.
        let selection = params.get(&SELECTION).unwrap_or(Selection::All);
        let trust = Trust::of_this_process(usual);
        for file in catalogue.files(params, usual, &trust) {
            let named = load::component_of(&file);
            if named.is_some_and(|name| !selection.allows(name)) {
                catalogue.passed.files.push(file);
                continue;
            }
            let opened = match named {
                None => Err(LoadError::FileName),
                Some(_) => trust.check(&file).map_err(LoadError::Untrusted),
            };
            let found = opened.and_then(|()| load::open(&file)).and_then(|plugin| {
                let (name, params) = (plugin.name, plugin.params);
                if named != Some(name) {
                    return Err(LoadError::OtherName { name: name.into() });
                }
                if engine_names.contains(&name) {
                    return Err(LoadError::Reserved { name: name.into() });
                }
                let taken = catalogue.take(plugin, Origin::File(file.clone()), prefer);
                if taken.is_err() {
                    catalogue.passed.params.push(params);
                }
                taken
            });
            if let Err(reason) = found {
                catalogue.rejected.push(Rejected { file, reason });
            }
        }
        catalogue
    }

    /// Creates the components for `Parts::coll` of the engine.
    pub fn components(&self) -> Vec<Box<dyn Component>> {
        let component = |taken: &Taken| adapter::PluginComponent::new(taken.plugin.clone());
        self.taken
            .iter()
            .map(|taken| Box::new(component(taken)) as Box<dyn Component>)
            .collect()
    }

    /// The plugin files; unreadable directories are rejected only if the user has named them.
    fn files(&mut self, params: &Params, usual: Option<&Path>, trust: &Trust) -> Vec<PathBuf> {
        let named = text::to_os(params.text(PATH.about()));
        if let (false, Some(directory)) = (named.is_empty(), usual) {
            // Only file names are needed, so an unreadable directory is ignored.
            self.passed.files = load::files(directory).unwrap_or_default();
        }
        let usual = usual.filter(|_| named.is_empty()).map(Path::to_path_buf);
        let directories = std::env::split_paths(&named).filter(|d| !d.as_os_str().is_empty());
        let mut all = Vec::new();
        for directory in directories.chain(usual) {
            if let Err(why) = trust.check(&directory) {
                self.rejected.push(Rejected {
                    file: directory,
                    reason: LoadError::Untrusted(why),
                });
                continue;
            }
            match load::files(&directory) {
                Ok(files) => all.extend(files),
                Err(_) if named.is_empty() => {}
                Err(e) => {
                    let reason = LoadError::Directory {
                        reason: e.to_string(),
                    };
                    self.rejected.push(Rejected {
                        file: directory,
                        reason,
                    });
                }
            }
        }
        all
    }

    /// Adds a component, unless an existing one takes precedence.
    fn take(&mut self, plugin: Plugin, origin: Origin, prefer: &str) -> Result<(), LoadError> {
        let (name, version) = (plugin.name, plugin.version);
        let found = Taken {
            plugin: Rc::new(plugin),
            origin,
        };
        let Some(present) = self
            .taken
            .iter_mut()
            .find(|taken| taken.plugin.name == name)
        else {
            self.taken.push(found);
            return Ok(());
        };
        let preferred = present.origin == Origin::BuiltIn
            && prefer.split(',').any(|wanted| wanted.trim() == name);
        if !preferred && numbers(version) <= numbers(present.plugin.version) {
            return Err(LoadError::NotNewer {
                name: name.into(),
                version: version.into(),
                other: present.origin.to_string(),
                other_version: present.plugin.version.into(),
            });
        }
        let replaced = std::mem::replace(present, found);
        self.passed.params.push(replaced.plugin.params);
        Ok(())
    }
}

/// Parses a version into numbers, so that 1.10 is newer than 1.9; a part that is not a number counts as zero.
fn numbers(version: &str) -> Vec<u64> {
    let mut numbers: Vec<u64> = version
        .split(['.', '-', '+'])
        .map(|part| part.parse().unwrap_or(0))
        .collect();
    while numbers.last() == Some(&0) {
        numbers.pop();
    }
    numbers
}
