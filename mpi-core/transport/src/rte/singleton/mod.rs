//! `singleton`: the component for a process without a launcher, which is rank 0 of 1.
//!
//! When the process first spawns other processes, it starts a launcher,
//! which then serves the process like any launcher ([`adoption`]).
//!
//! This component returns an error if the environment shows
//! that a launcher has started several processes without a protocol to connect them, as plain `srun` does.

mod adoption;

use super::machine_names::MachineNames;
use super::pmi1::Pmi1;
use super::{
    Component, Env, FailedSpawn, Identity, Lost, NodeMembership, Offer, Rte, RteError,
    SpawnRequest, pmix, sys,
};
use mpi_base::fdpass::Key;
use mpi_base::node::Node;
use mpi_base::param::Params;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub const COMPONENT: Component = Component {
    name: "singleton",
    help: "A program started without a launcher is alone.",
    params: &[],
    open,
};

/// A launcher that can start processes without a protocol to connect them.
struct Silent {
    launcher: &'static str,
    /// The environment variable that contains the number of processes.
    size: &'static str,
    advice: &'static str,
}

/// Returns a job name that is unique on all machines.
fn alone() -> String {
    let random = Key::random().map(|key| key.to_hex()).unwrap_or_default();
    let random = random.get(..16).unwrap_or_default();
    format!("singleton_{}_{random}", std::process::id())
}

const SILENT: &[Silent] = &[
    Silent {
        launcher: "srun",
        size: "SLURM_STEP_NUM_TASKS",
        advice: "use srun --mpi=pmi2 or --mpi=pmix",
    },
    Silent {
        launcher: "Open MPI's mpirun",
        size: "OMPI_COMM_WORLD_SIZE",
        advice: "let the rte component pmix be selected, or use the mpirun of this library",
    },
];

fn open(env: &Env, _: &Params) -> Result<Offer, RteError> {
    // A child process of a rank inherits the variables but not the connection to the launcher, so it is a singleton.
    let is_child_of_a_rank = ["PMI_FD", "PMI_PORT", pmix::RANK]
        .into_iter()
        .any(|name| env.has(name));
    for silent in SILENT.iter().filter(|_| !is_child_of_a_rank) {
        if let Some(size) = env.number(silent.size)?.filter(|&size| size > 1) {
            return Err(RteError::NoWireUp {
                launcher: silent.launcher,
                size,
                advice: silent.advice,
            });
        }
    }
    Ok(Offer::Here(Box::new(Singleton {
        identity: Identity {
            job: alone(),
            rank: 0,
            size: 1,
            appnum: None,
            universe_size: adoption::universe_size(),
            spawned: false,
        },
        values: Mutex::default(),
        names: MachineNames::default(),
        launcher: Mutex::default(),
    })))
}

struct Singleton {
    identity: Identity,
    values: Mutex<HashMap<String, Vec<u8>>>,
    names: MachineNames,
    /// The launcher that this process has started; `None` before the first spawn and after `MPI_Finalize`.
    launcher: Mutex<Option<Arc<Pmi1>>>,
}

impl Singleton {
    fn adoption(&self) -> MutexGuard<'_, Option<Arc<Pmi1>>> {
        self.launcher.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the launcher that this process has started; `None` if it has started none.
    fn adopted(&self) -> Option<Arc<Pmi1>> {
        self.adoption().clone()
    }

    /// Returns the launcher of this process; starts it if necessary.
    fn served(&self) -> Result<Arc<Pmi1>, RteError> {
        let mut launcher = self.adoption();
        if let Some(known) = &*launcher {
            return Ok(known.clone());
        }
        let new = Arc::new(adoption::adopt(&self.identity)?);
        Ok(launcher.insert(new).clone())
    }
}

impl Rte for Singleton {
    fn component(&self) -> &'static str {
        COMPONENT.name
    }

    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn put(&self, key: &str, value: &[u8]) -> Result<(), RteError> {
        let mut values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        values.insert(key.to_string(), value.to_vec());
        Ok(())
    }

    fn fence(&self) -> Result<(), RteError> {
        Ok(())
    }

    fn get(&self, rank: u32, key: &str) -> Result<Vec<u8>, RteError> {
        let values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        let value = values.get(key).filter(|_| rank == 0).cloned();
        value.ok_or_else(|| RteError::NoSuchKey {
            key: key.into(),
            rank,
        })
    }

    fn node_segment(&self) -> Result<NodeMembership, RteError> {
        let memory = Node::create(1).map_err(RteError::Node)?;
        Ok(NodeMembership {
            place: Node::claim(memory, 0).map_err(RteError::Node)?,
            local_ranks: vec![0],
            sharers: None,
        })
    }

    fn lost(&self) -> Option<Lost> {
        self.adopted()?.lost()
    }

    fn publish(&self, service: &str, port: &str) -> Result<(), RteError> {
        self.names.publish(service, port)
    }

    fn lookup(&self, service: &str) -> Result<Option<String>, RteError> {
        // Spawned jobs publish their services at the launcher that was started for them, so this launcher is queried first.
        let launcher = self.adopted();
        let found = launcher.map_or(Ok(None), |launcher| launcher.lookup(service))?;
        found.map_or_else(|| MachineNames::look_up(service), |port| Ok(Some(port)))
    }

    fn unpublish(&self, service: &str) -> Result<bool, RteError> {
        self.names.unpublish(service)
    }

    fn spawn_job(&self, request: &SpawnRequest) -> Result<Option<String>, RteError> {
        self.served()?.spawn_job(request)
    }

    fn failed_spawns(&self) -> Vec<FailedSpawn> {
        let launcher = self.adopted();
        launcher.map_or_else(Vec::new, |launcher| launcher.failed_spawns())
    }

    fn tell_connections(&self, jobs: &[u64]) {
        if let Some(launcher) = self.adopted() {
            launcher.tell_connections(jobs);
        }
    }

    fn finalize(&self) -> Result<(), RteError> {
        let launcher = self.adoption().take();
        launcher.map_or(Ok(()), |launcher| launcher.finalize())
    }

    fn abort(&self, code: i32, message: &str) -> ! {
        // If another thread holds the lock, it is starting the launcher, which has no job to end yet.
        if let Ok(launcher) = self.launcher.try_lock()
            && let Some(launcher) = &*launcher
        {
            launcher.abort(code, message)
        }
        sys::exit_now(sys::abort_status(code))
    }
}
