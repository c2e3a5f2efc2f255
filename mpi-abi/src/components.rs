//! The components this library is put together from.
//!
//! The engine has components of its own. Others are built into a file that is linked from this crate, which says so before it calls
//! anything else here ([`build_in`]), or are files of their own beside it. So this crate is compiled once, whatever is built in.

use std::sync::OnceLock;

use mpi_base::param::Params;
use mpi_core::coll::{self, Component};
use mpi_core::plugin::Catalogue;
use mpi_core::plugin::guest::BuiltIn;

/// Components that could as well be plugin files; none until [`build_in`] names them.
static BUILT_IN: OnceLock<&[BuiltIn]> = OnceLock::new();

/// Says which components are built into this file; what is said first holds.
pub fn build_in(components: &'static [BuiltIn]) {
    BUILT_IN.get_or_init(|| components);
}

/// The components beside those of the engine, built in or from files, and why files were not taken.
pub fn catalogue(params: &Params) -> Catalogue {
    let engine = coll::built_in();
    let names: Vec<_> = engine.iter().map(|component| component.name()).collect();
    let usual = mpi_base::installation::prefix().map(|prefix| prefix.join("lib/portcullis"));
    let built_in = BUILT_IN.get().copied().unwrap_or_default();
    Catalogue::gather(built_in, &names, params, usual.as_deref())
}

/// All collective components: the engine's own and those of the catalogue.
pub fn coll(catalogue: &Catalogue) -> Vec<Box<dyn Component>> {
    let mut components = coll::built_in();
    components.extend(catalogue.components());
    components
}
