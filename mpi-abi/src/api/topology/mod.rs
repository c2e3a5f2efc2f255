//! Virtual topologies (chapter 8): the values are `mpi_core::topo`'s, here they meet communicators.

pub mod cart;
pub mod dims;
pub mod dist_graph;
pub mod graph;

use super::args::out;
use crate::abi::*;
use crate::error::{Failure, Outcome};
use crate::object::comm::{CommObject, register};
use crate::state;
use mpi_core::comm::SplitKey;
use mpi_core::topo::Topology;
use std::ffi::c_int;
use std::rc::Rc;

pub unsafe fn MPI_Topo_test(comm: MPI_Comm, status: *mut c_int) -> Outcome {
    let kind = match state::comm(comm)?.topology.get() {
        None => MPI_UNDEFINED,
        Some(Topology::Cart(_)) => MPI_CART,
        Some(Topology::Graph(_)) => MPI_GRAPH,
        Some(Topology::DistGraph(_)) => MPI_DIST_GRAPH,
    };
    // SAFETY: an output argument of the caller.
    unsafe { out(status, kind, "status") }
}

/// The failure of a communicator without the topology that the call is about.
#[cold]
fn lacks(comm: &CommObject, what: &str) -> Failure {
    Failure::new(
        MPI_ERR_TOPOLOGY,
        format!("{} has no {what} topology", comm.label()),
    )
}

/// A communicator of the first `members` processes of the parent, with a topology; none for the others.
fn arranged(
    parent: &Rc<CommObject>,
    members: u64,
    topology: impl FnOnce() -> Topology,
) -> Result<MPI_Comm, Failure> {
    let rank = parent.comm.rank();
    let mine = SplitKey {
        color: (u64::from(rank) < members).then_some(0),
        key: rank as i32,
    };
    split(parent, mine, topology)
}

/// The part of the parent that this process comes into, with a topology.
fn split(
    parent: &Rc<CommObject>,
    mine: SplitKey,
    topology: impl FnOnce() -> Topology,
) -> Result<MPI_Comm, Failure> {
    let Some(new) = state::engine()?.block_on(parent.comm.split(mine))? else {
        return Ok(MPI_COMM_NULL);
    };
    let object = register(new, parent)?;
    // A communicator made a moment ago has none yet.
    let _ = object.topology.set(topology());
    Ok(object.handle())
}
