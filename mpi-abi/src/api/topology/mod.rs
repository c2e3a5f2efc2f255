//! Virtual topologies (chapter 8) of communicators; the topology types are in `mpi_core::topo`.

pub mod cart;
pub mod dims;
pub mod dist_graph;
pub mod graph;

use super::args::Out;
use crate::abi::*;
use crate::error::{Failure, Outcome};
use crate::info::Hints;
use crate::object::comm::CommObject;
use crate::registry::comm::register;
use crate::state;
use mpi_core::comm::SplitKey;
use mpi_core::topo::reorder::{Place, Wires, reorder};
use mpi_core::topo::{Cart, Topology};
use std::ffi::c_int;
use std::rc::Rc;

pub fn MPI_Topo_test(comm: MPI_Comm, status: Out<c_int>) -> Outcome {
    let kind = match state::comm(comm)?.topology.get() {
        None => MPI_UNDEFINED,
        Some(Topology::Cart(_)) => MPI_CART,
        Some(Topology::Graph(_)) => MPI_GRAPH,
        Some(Topology::DistGraph(_)) => MPI_DIST_GRAPH,
    };
    status.set(kind, "status")
}

/// Returns the failure for a communicator without the required topology.
#[cold]
fn lacks(comm: &CommObject, what: &str) -> Failure {
    Failure::new(
        MPI_ERR_TOPOLOGY,
        format!("{} has no {what} topology", comm.label()),
    )
}

/// Returns the communicator from which a topology function creates a new one.
/// An intercommunicator is an error (sections 8.5.1 to 8.5.4).
fn parent_of(handle: MPI_Comm) -> Result<Rc<CommObject>, Failure> {
    let parent = state::comm(handle)?;
    if parent.comm.is_inter() {
        return Err(Failure::new(
            MPI_ERR_COMM,
            format!(
                "{} is an intercommunicator, and only the processes of an intracommunicator have a topology",
                parent.label()
            ),
        ));
    }
    Ok(parent)
}

/// Returns this process's rank in a topology of the first `members` ranks, without reordering.
/// Returns `None` if this process is not in the topology.
fn same_rank(comm: &CommObject, members: u64) -> Option<u32> {
    let rank = comm.comm.rank();
    (u64::from(rank) < members).then_some(rank)
}

/// Returns this process's rank in a topology with reordering. Collective over the communicator.
fn new_rank(comm: &CommObject, wires: &Wires, grid: Option<&Cart>) -> Result<Option<u32>, Failure> {
    let places = state::engine()?.block_on(comm.comm.hardware().places())?;
    Ok(reordered_rank(comm, wires, grid, &places))
}

/// Returns this process's rank with reordering, in a local call.
/// Keeps the present order if reordering would require communication with other nodes.
fn local_rank(comm: &CommObject, wires: &Wires, grid: Option<&Cart>) -> Option<u32> {
    match comm.comm.hardware().places_here() {
        Some(places) => reordered_rank(comm, wires, grid, &places),
        None => same_rank(comm, wires.vertices() as u64),
    }
}

fn reordered_rank(
    comm: &CommObject,
    wires: &Wires,
    grid: Option<&Cart>,
    places: &[Place],
) -> Option<u32> {
    let layout = reorder(wires, grid, places);
    let placed_rank = layout
        .iter()
        .position(|process| *process == comm.comm.rank());
    placed_rank.map(|placed_rank| placed_rank as u32)
}

/// Converts an optional rank for `MPI_Cart_map` and `MPI_Graph_map`: `None` is `MPI_UNDEFINED`.
fn rank_or_undefined(placed_rank: Option<u32>) -> c_int {
    placed_rank.map_or(MPI_UNDEFINED, |placed_rank| placed_rank as c_int)
}

/// Creates a communicator with a topology. The processes are ordered by `placed_rank`.
/// Processes without a rank in the topology get `MPI_COMM_NULL`.
fn arranged(
    parent: &Rc<CommObject>,
    placed_rank: Option<u32>,
    topology: impl FnOnce() -> Topology,
) -> Result<MPI_Comm, Failure> {
    let mine = SplitKey {
        color: placed_rank.map(|_| 0),
        key: placed_rank.unwrap_or(0) as i32,
    };
    split(parent, mine, topology)
}

/// Sets the hints of a communicator created by a topology function.
fn give_hints(new: MPI_Comm, hints: &Hints) -> Result<(), Failure> {
    if new != MPI_COMM_NULL {
        *state::comm(new)?.attached.hints.borrow_mut() = Hints::known(hints);
    }
    Ok(())
}

/// Splits the parent communicator. Returns this process's communicator, with a topology.
fn split(
    parent: &Rc<CommObject>,
    mine: SplitKey,
    topology: impl FnOnce() -> Topology,
) -> Result<MPI_Comm, Failure> {
    let Some(new) = state::engine()?.block_on(parent.comm.constructors().split(mine))? else {
        return Ok(MPI_COMM_NULL);
    };
    let object = register(new, parent)?;
    // A new communicator has no topology yet, so `set` succeeds.
    let _ = object.topology.set(topology());
    Ok(object.handle())
}
