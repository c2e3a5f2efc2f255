//! Graph topologies: every process has the whole graph (section 8.5.3).
#![allow(unsafe_code)]

use super::{arranged, lacks, local_rank, new_rank, parent_of, rank_or_undefined, same_rank};
use crate::abi::*;
use crate::api::args::{InArray, InOutArray, Out, Uncounted, length};
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

/// Builds a graph from the caller's arguments.
fn read(nnodes: c_int, index: InArray<c_int>, edges: Uncounted<c_int>) -> Result<Graph, Failure> {
    length(nnodes, "nnodes")?;
    let index = index.widened("index")?;
    let count = usize::try_from(index.last().copied().unwrap_or(0)).unwrap_or(0);
    // SAFETY: the length of `edges` is the last element of `index` (section 8.5.3).
    let edges = unsafe { edges.counted(count) }.widened("edges")?;
    Ok(Graph::new(&index, &edges)?)
}

/// Stores the values in the array, and drops those beyond its length.
fn fill(to: InOutArray<c_int>, values: &[u32], name: &str) -> Outcome {
    let to = to.up_to(values.len()).get(name)?;
    to.iter_mut()
        .zip(values)
        .for_each(|(to, value)| *to = *value as c_int);
    Ok(())
}

pub fn MPI_Graph_create(
    comm_old: MPI_Comm,
    nnodes: c_int,
    indx: InArray<c_int>,
    edges: Uncounted<c_int>,
    reorder: c_int,
    comm_graph: Out<MPI_Comm>,
) -> Outcome {
    let parent = parent_of(comm_old)?;
    let graph = read(nnodes, indx, edges)?.fit(parent.comm.size())?;
    let placed_rank = match reorder {
        0 => same_rank(&parent, graph.index().len() as u64),
        _ => new_rank(&parent, &Wires::of_graph(&graph), None)?,
    };
    let new = arranged(&parent, placed_rank, || Topology::Graph(graph))?;
    comm_graph.set(new, "comm_graph")
}

pub fn MPI_Graph_map(
    comm: MPI_Comm,
    nnodes: c_int,
    indx: InArray<c_int>,
    edges: Uncounted<c_int>,
    newrank: Out<c_int>,
) -> Outcome {
    let object = parent_of(comm)?;
    let graph = read(nnodes, indx, edges)?.fit(object.comm.size())?;
    let placed_rank = local_rank(&object, &Wires::of_graph(&graph), None);
    newrank.set(rank_or_undefined(placed_rank), "newrank")
}

pub fn MPI_Graphdims_get(comm: MPI_Comm, nnodes: Out<c_int>, nedges: Out<c_int>) -> Outcome {
    let object = state::comm(comm)?;
    let graph = graph(&object)?;
    nnodes.set(graph.index().len() as c_int, "nnodes")?;
    nedges.set(graph.edges().len() as c_int, "nedges")
}

pub fn MPI_Graph_get(
    comm: MPI_Comm,
    maxindex: c_int,
    maxedges: c_int,
    indx: InOutArray<c_int>,
    edges: InOutArray<c_int>,
) -> Outcome {
    let object = state::comm(comm)?;
    let graph = graph(&object)?;
    length(maxindex, "maxindex")?;
    fill(indx, graph.index(), "index")?;
    length(maxedges, "maxedges")?;
    fill(edges, graph.edges(), "edges")
}

pub fn MPI_Graph_neighbors_count(comm: MPI_Comm, rank: c_int, nneighbors: Out<c_int>) -> Outcome {
    let count = graph(&*state::comm(comm)?)?.neighbours(rank.into())?.len();
    nneighbors.set(count as c_int, "nneighbors")
}

pub fn MPI_Graph_neighbors(
    comm: MPI_Comm,
    rank: c_int,
    maxneighbors: c_int,
    neighbors: InOutArray<c_int>,
) -> Outcome {
    let object = state::comm(comm)?;
    let all = graph(&object)?.neighbours(rank.into())?;
    length(maxneighbors, "maxneighbors")?;
    fill(neighbors, all, "neighbors")
}
