//! `singleton`: nobody has launched us, we are rank 0 of 1.
//!
//! It refuses where the environment shows that a launcher has started several of us without wire-up, as plain `srun` does.

use super::{Component, Env, Identity, Lost, NodeMembership, Offer, Rte, RteError, pmix, sys};
use mpi_base::fdpass::Key;
use mpi_base::node::Node;
use mpi_base::param::Params;
use std::collections::HashMap;
use std::os::fd::BorrowedFd;
use std::sync::{Mutex, PoisonError};

pub const COMPONENT: Component = Component {
    name: "singleton",
    help: "A program started without a launcher is alone.",
    params: &[],
    open,
};

/// A launcher that is known to start processes without wire-up.
struct Silent {
    launcher: &'static str,
    /// Set for each process, with the number of processes.
    size: &'static str,
    advice: &'static str,
}

/// A name that no other process has, on this machine or another.
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
    // A child of a rank inherits the variables but not the connection; it is alone, and rightly so.
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
            universe_size: None,
            spawned: false,
        },
        values: Mutex::default(),
    })))
}

struct Singleton {
    identity: Identity,
    values: Mutex<HashMap<String, Vec<u8>>>,
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
        Ok(NodeMembership {
            fd: Node::create(1).map_err(RteError::Node)?,
            local_rank: 0,
            local_ranks: vec![0],
            sharers: None,
        })
    }

    fn launcher(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn lost(&self) -> Option<Lost> {
        None
    }

    fn finalize(&self) -> Result<(), RteError> {
        Ok(())
    }

    fn abort(&self, code: i32, _: &str) -> ! {
        sys::exit_now(sys::abort_status(code))
    }
}
