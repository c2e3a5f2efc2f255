//! Components from outside, loaded at run time: data with functions, in both directions.
//!
//! The promise, which `include/portcullis/plugin.h` states for C programmers: a plugin is a file in a directory.
//! Neither the program nor the library is compiled or linked again, nothing is resolved by symbol beyond the one that names the plugin,
//! and every function slot is optional.
//!
//! | module | what it is |
//! |---|---|
//! | [`abi`] | the tables, as in the header |
//! | `passed` | plugins that were passed over on purpose |
//! | `table` | a foreign table, checked |
//! | `load` | files become tables |
//! | `seat` | a module's place at a communicator, with the services in safe code |
//! | `memory` | the service that hands out shared memory |
//! | `host` | the same services as the C table that plugins get |
//! | `adapter` | a table as a component of the coll framework |
//! | [`guest`] | the other side: writing a plugin in safe Rust |
//!
//! A component that is built in goes through the same tables as one from a file, so both are one code path and one test.
//!
//! When a file brings a component that there is already, the newer version wins, and the one that is built in if versions are equal;
//! `mca_component_prefer` takes the file in any case.
//! Names of components that are part of the engine itself are not for files.

pub mod abi;
mod adapter;
mod eureka;
pub mod guest;
mod host;
mod load;
mod memory;
mod passed;
mod seat;
mod shared_memory;
mod table;
#[cfg(test)]
mod tests;

pub use load::LoadError;
pub use passed::Passed;
pub use table::{Plugin, TableError};

use crate::Component;
use mpi_base::param::{About, Level, Param, Params};
use mpi_base::text;
use std::fmt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Where plugins are looked for.
pub static PATH: Param<String> = Param::new(
    "mca",
    "component",
    "path",
    "",
    Level::TUNER,
    "Directories, separated by colons, whose *.so files are loaded as plugins; by default lib/portcullis of the installation",
);

/// Which plugins replace what is built in whatever their version.
pub static PREFER: Param<String> = Param::new(
    "mca",
    "component",
    "prefer",
    "",
    Level::TUNER,
    "Names, separated by commas, of components that are taken from the plugin directories even if those built in are as new",
);

/// The parameters of this module, for listings.
pub fn params() -> [&'static About; 2] {
    [PATH.about(), PREFER.about()]
}

/// Where a component came from.
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

/// A component that was taken.
pub struct Taken {
    pub plugin: Rc<Plugin>,
    pub origin: Origin,
}

/// A file, or a directory, that gave no component, and why.
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

/// What was found, for the engine and for listings.
#[derive(Default)]
pub struct Catalogue {
    pub taken: Vec<Taken>,
    pub rejected: Vec<Rejected>,
    pub passed: Passed,
}

impl Catalogue {
    /// Gathers what is built in and what lies in the plugin directories.
    ///
    /// `usual` is the plugin directory of the installation, and `engine_names` are those that files may not use.
    pub fn gather(
        built_in: &[guest::BuiltIn],
        engine_names: &[&str],
        params: &Params,
        usual: Option<&Path>,
    ) -> Catalogue {
        let mut catalogue = Catalogue::default();
        for table in built_in {
            // What we build in is checked by the tests of its crate.
            if let Ok(plugin) = table.check() {
                catalogue.taken.push(Taken {
                    plugin: Rc::new(plugin),
                    origin: Origin::BuiltIn,
                });
            }
        }
        let prefer = params.text(PREFER.about());
        for file in catalogue.files(params, usual) {
            let found = load::open(&file).and_then(|plugin| {
                let (name, params) = (plugin.name, plugin.params);
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

    /// The components for [`crate::engine::Parts::coll`].
    pub fn components(&self) -> Vec<Box<dyn Component>> {
        let component = |taken: &Taken| adapter::PluginComponent::new(taken.plugin.clone());
        self.taken
            .iter()
            .map(|taken| Box::new(component(taken)) as Box<dyn Component>)
            .collect()
    }

    /// The files to look at; directories that cannot be read are rejected if the user has named them.
    fn files(&mut self, params: &Params, usual: Option<&Path>) -> Vec<PathBuf> {
        let named = text::to_os(params.text(PATH.about()));
        if let (false, Some(directory)) = (named.is_empty(), usual) {
            // Only names are wanted of it, so that it cannot be read says nothing.
            self.passed.files = load::files(directory).unwrap_or_default();
        }
        let usual = usual.filter(|_| named.is_empty()).map(Path::to_path_buf);
        let directories = std::env::split_paths(&named).filter(|d| !d.as_os_str().is_empty());
        let mut all = Vec::new();
        for directory in directories.chain(usual) {
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

    /// Takes a component, unless there is one that it may not replace.
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

/// A version as numbers, so that 1.10 is newer than 1.9; what is not a number counts as zero.
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
