//! The components this library is put together from: the one place that names crates above the engine.

use mpi_base::param::Params;
use mpi_core::coll::{self, Component};
use mpi_core::plugin::Catalogue;
use mpi_core::plugin::guest::BuiltIn;

/// Components that could as well be plugin files.
const BUILT_IN: &[BuiltIn] = &[
    #[cfg(feature = "hwbarr")]
    coll_hwbarr::TABLE,
];

/// The components beside those of the engine, built in or from files, and why files were not taken.
pub fn catalogue(params: &Params) -> Catalogue {
    let engine = coll::built_in();
    let names: Vec<_> = engine.iter().map(|component| component.name()).collect();
    let usual = mpi_base::installation::prefix().map(|prefix| prefix.join("lib/portcullis"));
    Catalogue::gather(BUILT_IN, &names, params, usual.as_deref())
}

/// All collective components: the engine's own and those of the catalogue.
pub fn coll(catalogue: &Catalogue) -> Vec<Box<dyn Component>> {
    let mut components = coll::built_in();
    components.extend(catalogue.components());
    components
}
