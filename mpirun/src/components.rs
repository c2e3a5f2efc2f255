//! Component catalogue for the tools: built-in components and the installation's plugins.

use mpi_abi::components;
use mpi_base::param::Params;
use mpi_core::plugin::Catalogue;

/// Returns the linked-in components, and the plugins that the library finds with `params`.
pub fn catalogue(params: &Params) -> Catalogue {
    // `mpi-abi/library` registers the same list.
    components::build_in(&[coll_hwbarr::TABLE]);
    components::catalogue(params)
}
