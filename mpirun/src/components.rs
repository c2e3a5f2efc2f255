//! The components of the library beside the tools: what is built into that file, and the plugin files of the installation.

use mpi_abi::components;
use mpi_base::param::Params;
use mpi_core::plugin::Catalogue;

/// Those that are not the engine's, as the library finds them in a process with these parameters.
pub fn catalogue(params: &Params) -> Catalogue {
    // As `mpi-abi/library` has it.
    components::build_in(&[coll_hwbarr::TABLE]);
    components::catalogue(params)
}
