//! Table of all frameworks of the library and the launcher, with their components and parameters.

use crate::components;
use crate::launch::srun;
use crate::params;
use mpi_abi::frameworks;
pub use mpi_abi::frameworks::{Component, Framework};
use mpi_base::param::Params;
use mpi_core::btl;
use std::fmt;
use std::path::PathBuf;

/// A plugin file or a folder of plugins that is unused, with the reason.
pub struct NotUsed {
    pub file: PathBuf,
    pub reason: String,
}

impl fmt::Display for NotUsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file.display(), self.reason)
    }
}

/// Returns all frameworks, sorted by name.
pub fn all(values: &Params) -> Vec<Framework> {
    all_and_not_used(values).0
}

/// Returns all frameworks, sorted by name, and the unused plugin files.
pub fn all_and_not_used(values: &Params) -> (Vec<Framework>, Vec<NotUsed>) {
    let catalogue = components::catalogue(values);
    let mut all = frameworks::with(&catalogue);
    let not_used = catalogue.rejected.into_iter().map(|rejected| NotUsed {
        reason: rejected.reason.to_string(),
        file: rejected.file,
    });
    let mut not_used: Vec<NotUsed> = not_used.collect();
    let transports = all.iter_mut().find(|framework| framework.name == "btl");
    if let Some(transports) = transports {
        add_transports(values, transports, &mut not_used);
    }
    all.extend(of_launcher());
    all.sort_by_key(|framework| framework.name);
    (all, not_used)
}

/// Adds the transports in plugin files, as their manifests describe them.
/// A job opens a transport's plugin file only if the parameter `btl` names the transport.
fn add_transports(values: &Params, to: &mut Framework, not_used: &mut Vec<NotUsed>) {
    for found in btl::plugin::list(values) {
        let is_built_in = to.components.iter().any(|known| known.name == found.name);
        match found.version {
            Ok(version) if !is_built_in => to.components.push(Component {
                version,
                file: Some(found.file),
                ..Component::new(&found.name, &[])
            }),
            Ok(_) => not_used.push(NotUsed {
                reason: format!("the library has a transport {} of its own", found.name),
                file: found.file,
            }),
            Err(error) => not_used.push(NotUsed {
                reason: error.reason(),
                file: found.file,
            }),
        }
    }
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
