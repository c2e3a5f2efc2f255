//! The frameworks of the library and of the launcher, with their components and parameters.

use crate::components;
use crate::launch::srun;
use crate::params;
use mpi_abi::frameworks;
pub use mpi_abi::frameworks::{Component, Framework};
use mpi_base::param::Params;
use mpi_core::plugin::Rejected;

/// Returns all frameworks, by name.
pub fn all(values: &Params) -> Vec<Framework> {
    all_and_rejected(values).0
}

/// Returns all frameworks, by name, and the plugin files that are not used.
pub fn all_and_rejected(values: &Params) -> (Vec<Framework>, Vec<Rejected>) {
    let catalogue = components::catalogue(values);
    let mut all = frameworks::with(&catalogue);
    all.extend(of_launcher());
    all.sort_by_key(|framework| framework.name);
    (all, catalogue.rejected)
}

/// Returns the frameworks of the launcher.
pub fn of_launcher() -> [Framework; 2] {
    [
        Framework {
            name: "mpirun",
            what: "the launcher",
            params: params::PARAMS.to_vec(),
            components: Vec::new(),
        },
        Framework {
            name: "plm",
            what: "how other hosts are reached",
            params: vec![srun::SELECT.about()],
            components: vec![
                Component::new("rsh", &[params::RSH_AGENT.about()]),
                Component::new("srun", &[srun::MPI.about()]),
            ],
        },
    ]
}
