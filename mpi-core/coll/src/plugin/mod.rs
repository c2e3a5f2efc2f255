//! Plugins: collective components that are loaded at run time and connected by C tables in both directions.
//!
//! To install a plugin, a C programmer copies one file to the plugin folder.
//! `include/portcullis/plugin.h` guarantees
//! that neither the program nor the library needs to be compiled or linked again.
//! The library looks up a single symbol in the file: a function that returns the plugin's table.
//! In a module's table every function may be null.
//!
//! | module | contents |
//! |---|---|
//! | `passed` | plugins skipped because of settings or versions |
//! | `table` | validation of a component table |
//! | `load` | loading of a file; folders and opening are in [`mpi_base::plugin_file`] |
//! | `module_comm` | the communicator as a module sees it: the services in safe code |
//! | `memory` | the shared memory service |
//! | [`host`] | the services as a trait, and as the C table that plugins receive |
//! | `data` | the services of datatypes and operators |
//! | `call`, `args` | one call with its messages, and its arguments in C |
//! | `operations`, `running`, `dense` | a module's functions for each collective, and how calls reach them |
//! | `module` | a module and its other functions |
//! | `adapter` | a plugin as a component of the coll framework |
//!
//! The tables ([`abi`]) and the plugin's side in safe Rust ([`guest`]) are those of the package `portcullis-plugin`.
//! A built-in component uses the same tables as one from a file, so both use the same code and its tests.
//!
//! If a file contains a component that exists already, the newer version is used;
//! if the versions are equal, the built-in one is used.
//! A component named in `mca_component_prefer` is always used from the file.
//! Files must not use the names of components of the engine itself.

mod adapter;
mod args;
mod call;
mod data;
mod dense;
mod eureka;
pub mod host;
mod load;
mod memory;
mod module;
mod module_comm;
mod operations;
mod passed;
mod running;
mod shared_memory;
mod table;
#[cfg(test)]
mod tests;

pub use load::LoadError;
pub use mpi_base::plugin_file::{Manifest, ManifestError, OpenError, PATH, Untrusted};
pub use passed::Passed;
pub use portcullis_plugin::coll as guest;
pub use portcullis_plugin::coll::abi;
pub use table::{Plugin, TableError};

use crate::Component;
use crate::select::SELECTION;
use load::FRAMEWORK;
use mpi_base::param::{About, Level, Param, Params, Selection};
use mpi_base::plugin_file::Trust;
use mpi_base::plugin_file::folders::{self, Places};
use mpi_base::state::StatePage;
use std::fmt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Parameter `mca_component_prefer`: components whose files replace built-in ones of any version.
pub static PREFER: Param<String> = Param::new(
    "mca",
    "component",
    "prefer",
    "",
    Level::TUNER,
    "Names, separated by commas, of components that are loaded from the plugin directories even if the built-in ones have the same version",
);

/// Returns the parameters of this module, for lists such as that of `mpi-info`.
pub fn params() -> [&'static About; 2] {
    [PATH.about(), PREFER.about()]
}

/// The origin of a component.
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

/// A selected component and its origin.
pub struct Taken {
    pub plugin: Rc<Plugin>,
    pub origin: Origin,
}

/// A file or directory that provides no component, and the reason.
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

/// All plugins found: the selected, the rejected and the skipped ones.
#[derive(Default)]
pub struct Catalogue {
    pub taken: Vec<Taken>,
    pub rejected: Vec<Rejected>,
    pub passed: Passed,
}

impl Catalogue {
    /// Collects the built-in components and those of the plugin directories.
    ///
    /// `usual` is the installation's plugin directory; components in files must not have one of the `engine_names`.
    pub fn gather(
        built_in: &[guest::BuiltIn],
        engine_names: &[&str],
        params: &Params,
        usual: Option<&Path>,
    ) -> Catalogue {
        Catalogue::gather_in_sight(built_in, engine_names, params, usual, None)
    }

    /// Same as [`Catalogue::gather`]; `page`, the process's state page, which `mpirun` reads, shows each file's name while the file is opened.
    pub fn gather_in_sight(
        built_in: &[guest::BuiltIn],
        engine_names: &[&str],
        params: &Params,
        usual: Option<&Path>,
        page: Option<&StatePage>,
    ) -> Catalogue {
        let mut catalogue = Catalogue::default();
        for table in built_in {
            // Built-in tables are checked by the tests of their crates.
            if let Ok(plugin) = Plugin::of_built_in(table) {
                catalogue.taken.push(Taken {
                    plugin: Rc::new(plugin),
                    origin: Origin::BuiltIn,
                });
            }
        }
        let prefer = params.text(PREFER.about());
        // An invalid selection is reported later, when the components are selected.
        let selection = params.get(&SELECTION).unwrap_or(Selection::All);
        let trust = Trust::of_this_process(usual);
        for file in catalogue.files(params, usual, &trust) {
            let names = folders::names_of(&file);
            let component = match names {
                Some((FRAMEWORK, component)) => component.to_owned(),
                // Files of transports are opened by the BTL framework and not here.
                Some(("btl", _)) => {
                    catalogue.passed.files.push(file);
                    continue;
                }
                _ => {
                    let reason = LoadError::FileName;
                    catalogue.rejected.push(Rejected { file, reason });
                    continue;
                }
            };
            if !selection.allows(&component) {
                catalogue.passed.files.push(file);
                continue;
            }
            let found = catalogue.load(&file, &component, &trust, (engine_names, prefer, page));
            if let Err(reason) = found {
                catalogue.rejected.push(Rejected { file, reason });
            }
        }
        catalogue
    }

    /// Checks a file, opens it, and adds its component to those selected.
    fn load(
        &mut self,
        file: &Path,
        component: &str,
        trust: &Trust,
        (engine_names, prefer, page): (&[&str], &str, Option<&StatePage>),
    ) -> Result<(), LoadError> {
        if engine_names.contains(&component) {
            return Err(LoadError::Reserved {
                name: component.into(),
            });
        }
        trust.check(file).map_err(LoadError::Untrusted)?;
        let (manifest, before) = load::manifest(file, component)?;
        let place = match self.place(&manifest, prefer) {
            Ok(place) => place,
            Err(reason) => {
                // A plugin of the same version has the same parameters as the selected one, so these are known already.
                let is_same = |taken: &Taken| taken.plugin.version == &*manifest.version;
                if !self.taken.iter().any(is_same) {
                    self.passed.files.push(file.to_path_buf());
                }
                return Err(reason);
            }
        };
        let found = Taken {
            plugin: Rc::new(load::open(file, &manifest, before, page)?),
            origin: Origin::File(file.to_path_buf()),
        };
        match place.and_then(|at| self.taken.get_mut(at)) {
            None => self.taken.push(found),
            Some(present) => {
                let replaced = std::mem::replace(present, found);
                self.passed.params.push(replaced.plugin.params);
            }
        }
        Ok(())
    }

    /// Creates the components, which the engine gets as `Parts::coll`.
    pub fn components(&self) -> Vec<Box<dyn Component>> {
        self.taken
            .iter()
            .map(|taken| Box::new(adapter::PluginComponent::new(taken)) as Box<dyn Component>)
            .collect()
    }

    /// Returns the plugin files in search order; an unreadable folder is an error only if the user's settings name it.
    fn files(&mut self, params: &Params, usual: Option<&Path>, trust: &Trust) -> Vec<PathBuf> {
        let (search, passed) = Places::of_this_process(usual).order(params);
        for folder in passed {
            // Only the file names are needed, to know which parameters exist, so an unreadable folder is ignored.
            let files = folders::files(&folder).unwrap_or_default();
            self.passed.files.extend(files);
        }
        let mut all = Vec::new();
        for folder in search {
            let mut reject = |reason| {
                self.rejected.push(Rejected {
                    file: folder.path.clone(),
                    reason,
                });
            };
            if let Err(why) = trust.check(&folder.path) {
                reject(LoadError::Untrusted(why));
                continue;
            }
            match folders::files(&folder.path) {
                Ok(files) => all.extend(files),
                Err(_) if !folder.is_named => {}
                Err(e) => reject(LoadError::Directory {
                    reason: e.to_string(),
                }),
            }
        }
        all
    }

    /// Returns the index of the selected component that a file's component replaces, or `None` if there is none of its name.
    /// Returns an error if the selected one takes precedence.
    fn place(&self, manifest: &Manifest, prefer: &str) -> Result<Option<usize>, LoadError> {
        let (name, version) = (&*manifest.component, &*manifest.version);
        let is_same = |taken: &Taken| taken.plugin.name == name;
        let Some(at) = self.taken.iter().position(is_same) else {
            return Ok(None);
        };
        let present = &self.taken[at];
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
        Ok(Some(at))
    }
}

/// Parses a version into numbers (1.10 is newer than 1.9); a part that is not a number counts as zero.
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
