//! The components of this library: the engine's own, those linked in, and plugin files.
//!
//! Components other than the engine's are either linked into the shared library that uses this crate, which registers them with
//! [`build_in`] before it calls anything else here, or plugin files beside it. So this crate is compiled once for all variants.

use std::sync::OnceLock;

use mpi_base::param::Params;
use mpi_base::state::StatePage;
use mpi_core::coll::{self, Component};
use mpi_core::plugin::Catalogue;
use mpi_core::plugin::guest::BuiltIn;

/// Linked-in components, which could equally be plugin files; empty until [`build_in`] sets it.
static BUILT_IN: OnceLock<&[BuiltIn]> = OnceLock::new();

/// Registers the components that are linked into this library; the first call wins.
pub fn build_in(components: &'static [BuiltIn]) {
    BUILT_IN.get_or_init(|| components);
}

/// Returns the components beside the engine's own, linked in or from files, and the reasons why files were rejected.
pub fn catalogue(params: &Params) -> Catalogue {
    catalogue_in_sight(params, None)
}

/// The same with the page of this process, which names each file while it starts.
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
