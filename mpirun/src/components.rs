//! The library's components as the tools see them: those built into the library file, and the installation's plugins.

use mpi_abi::components;
use mpi_base::param::Params;
use mpi_core::plugin::Catalogue;

/// Returns the components outside the engine, as the library finds them in a process with these parameters.
pub fn catalogue(params: &Params) -> Catalogue {
    // The same list as in `mpi-abi/library`.
    components::build_in(&[coll_hwbarr::TABLE]);
    components::catalogue(params)
}
