//! The components of this library: the engine's own, linked-in components, and plugin files.
//!
//! The shared library that uses this crate may have linked-in components.
//! The shared library calls [`build_in`] before all other functions of this module.
//! Plugin files are found at run time, beside the library.
//! So all variants of the shared library use one build of this crate.

use std::sync::OnceLock;

use mpi_base::param::Params;
use mpi_base::state::StatePage;
use mpi_core::coll::{self, Component};
use mpi_core::plugin::Catalogue;
use mpi_core::plugin::guest::BuiltIn;

/// The linked-in components, which could also be plugin files. Set by [`build_in`].
static BUILT_IN: OnceLock<&[BuiltIn]> = OnceLock::new();

/// Registers the linked-in components of this library. Later calls have no effect.
pub fn build_in(components: &'static [BuiltIn]) {
    BUILT_IN.get_or_init(|| components);
}

/// Returns the linked-in components and plugins, and the reasons why plugin files were rejected.
pub fn catalogue(params: &Params) -> Catalogue {
    catalogue_in_sight(params, None)
}

/// Returns the catalogue. While a plugin is being loaded, its name is on the state page.
pub fn catalogue_in_sight(params: &Params, page: Option<&StatePage>) -> Catalogue {
    let engine = coll::built_in();
    let names: Vec<_> = engine.iter().map(|component| component.name()).collect();
    let usual = mpi_base::installation::plugins();
    let built_in = BUILT_IN.get().copied().unwrap_or_default();
    Catalogue::gather_in_sight(built_in, &names, params, usual.as_deref(), page)
}

/// Returns all collective components: the engine's own and those of the catalogue.
pub fn coll(catalogue: &Catalogue) -> Vec<Box<dyn Component>> {
    let mut components = coll::built_in();
    components.extend(catalogue.components());
    components
}
