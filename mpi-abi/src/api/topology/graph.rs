//! Graph topologies: every process knows the whole graph (section 8.5.3).

use super::{arranged, lacks, local_rank, new_rank, parent_of, rank_or_undefined, same_rank};
use crate::abi::*;
use crate::api::args::{length, out, slice_mut, widened};
use crate::error::{Failure, Outcome};
use crate::object::comm::CommObject;
use crate::state;
use mpi_core::topo::reorder::Wires;
use mpi_core::topo::{Graph, Topology};
use std::ffi::c_int;

fn graph(comm: &CommObject) -> Result<&Graph, Failure> {
    match comm.topology.get() {
        Some(Topology::Graph(graph)) => Ok(graph),
        _ => Err(lacks(comm, "graph")),
    }
}

/// Builds a graph from the arguments of the caller.
///
/// # Safety
/// Pointers that are not null are valid for `nnodes` elements, and for the number of edges in the last of them.
unsafe fn read(nnodes: c_int, index: *const c_int, edges: *const c_int) -> Result<Graph, Failure> {
    let nodes = length(nnodes, "nnodes")?;
    // SAFETY: `index` and `edges` are valid by the `# Safety` contract of this function.
    unsafe {
        let index = widened(index, nodes, "index")?;
        let count = usize::try_from(index.last().copied().unwrap_or(0)).unwrap_or(0);
        Ok(Graph::new(&index, &widened(edges, count, "edges")?)?)
    }
}

/// Stores the values, at most `room` of them.
///
/// # Safety
/// A pointer that is not null is valid for `room` elements.
unsafe fn fill(to: *mut c_int, room: usize, values: &[u32], name: &str) -> Outcome {
    // SAFETY: `to` is valid by the `# Safety` contract of this function.
    let to = unsafe { slice_mut(to, values.len().min(room), name)? };
    to.iter_mut()
        .zip(values)
        .for_each(|(to, value)| *to = *value as c_int);
    Ok(())
}

pub unsafe fn MPI_Graph_create(
    comm_old: MPI_Comm,
    nnodes: c_int,
    indx: *const c_int,
    edges: *const c_int,
    reorder: c_int,
    comm_graph: *mut MPI_Comm,
) -> Outcome {
    let parent = parent_of(comm_old)?;
    // SAFETY: `indx`, `edges` and `comm_graph` are valid as the C binding of MPI_Graph_create requires of its caller.
    unsafe {
        let graph = read(nnodes, indx, edges)?.fit(parent.comm.size())?;
        let placed_rank = match reorder {
            0 => same_rank(&parent, graph.index().len() as u64),
            _ => new_rank(&parent, &Wires::of_graph(&graph), None)?,
        };
        let new = arranged(&parent, placed_rank, || Topology::Graph(graph))?;
        out(comm_graph, new, "comm_graph")
    }
}

pub unsafe fn MPI_Graph_map(
    comm: MPI_Comm,
    nnodes: c_int,
    indx: *const c_int,
    edges: *const c_int,
    newrank: *mut c_int,
) -> Outcome {
    let object = parent_of(comm)?;
    // SAFETY: `indx`, `edges` and `newrank` are valid as the C binding of MPI_Graph_map requires of its caller.
    unsafe {
        let graph = read(nnodes, indx, edges)?.fit(object.comm.size())?;
        let placed_rank = local_rank(&object, &Wires::of_graph(&graph), None);
        out(newrank, rank_or_undefined(placed_rank), "newrank")
    }
}

pub unsafe fn MPI_Graphdims_get(comm: MPI_Comm, nnodes: *mut c_int, nedges: *mut c_int) -> Outcome {
    let object = state::comm(comm)?;
    let graph = graph(&object)?;
    // SAFETY: `nnodes` and `nedges` are null or writable: the C binding of MPI_Graphdims_get requires it of the caller.
    unsafe {
        out(nnodes, graph.index().len() as c_int, "nnodes")?;
        out(nedges, graph.edges().len() as c_int, "nedges")
    }
}

pub unsafe fn MPI_Graph_get(
    comm: MPI_Comm,
    maxindex: c_int,
    maxedges: c_int,
    indx: *mut c_int,
    edges: *mut c_int,
) -> Outcome {
    let object = state::comm(comm)?;
    let graph = graph(&object)?;
    // SAFETY: `indx` has `maxindex` and `edges` has `maxedges` elements: the C binding of MPI_Graph_get requires it of the caller.
    unsafe {
        fill(indx, length(maxindex, "maxindex")?, graph.index(), "index")?;
        fill(edges, length(maxedges, "maxedges")?, graph.edges(), "edges")
    }
}

pub unsafe fn MPI_Graph_neighbors_count(
    comm: MPI_Comm,
    rank: c_int,
    nneighbors: *mut c_int,
) -> Outcome {
    let count = graph(&*state::comm(comm)?)?.neighbours(rank.into())?.len();
    // SAFETY: `nneighbors` is null or writable: the C binding of MPI_Graph_neighbors_count requires it of the caller.
    unsafe { out(nneighbors, count as c_int, "nneighbors") }
}

pub unsafe fn MPI_Graph_neighbors(
    comm: MPI_Comm,
    rank: c_int,
    maxneighbors: c_int,
    neighbors: *mut c_int,
) -> Outcome {
    let object = state::comm(comm)?;
    let all = graph(&object)?.neighbours(rank.into())?;
    // SAFETY: `neighbors` has `maxneighbors` elements: the C binding of MPI_Graph_neighbors requires it of the caller.
    unsafe {
        fill(
            neighbors,
            length(maxneighbors, "maxneighbors")?,
            all,
            "neighbors",
        )
    }
}
