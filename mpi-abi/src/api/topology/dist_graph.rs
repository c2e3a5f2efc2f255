//! Distributed graph topologies: each process knows its own edges (section 8.5.4).

use super::{arranged, give_hints, lacks, new_rank, parent_of};
use crate::abi::*;
use crate::api::args::{length, out, slice, slice_mut, widened};
use crate::error::{Failure, Outcome};
use crate::info;
use crate::object::comm::CommObject;
use crate::state;
use mpi_core::topo::reorder::Wires;
use mpi_core::topo::{DistGraph, Edge, Topology};
use std::ffi::c_int;

fn dist_graph(comm: &CommObject) -> Result<&DistGraph, Failure> {
    match comm.topology.get() {
        Some(Topology::DistGraph(graph)) => Ok(graph),
        _ => Err(lacks(comm, "distributed graph")),
    }
}

/// Returns true if a weights argument is `MPI_UNWEIGHTED`.
fn is_unweighted(weights: *const c_int) -> bool {
    weights.addr() == MPI_UNWEIGHTED.addr()
}

/// Reads the weights of `len` edges, if any.
///
/// # Safety
/// A pointer that is no MPI constant and not null is valid for `len` elements.
unsafe fn read_weights(weights: *const c_int, len: usize, name: &str) -> Result<Vec<i32>, Failure> {
    if is_unweighted(weights) || len == 0 {
        return Ok(Vec::new());
    }
    if weights.addr() == MPI_WEIGHTS_EMPTY.addr() {
        return Err(Failure::new(
            MPI_ERR_ARG,
            format!("{name} is MPI_WEIGHTS_EMPTY, but there are {len} edges"),
        ));
    }
    // SAFETY: `weights` is valid by the `# Safety` contract of this function.
    let weights = unsafe { slice(weights, len, name)? };
    match weights.iter().find(|weight| **weight < 0) {
        Some(negative) => Err(Failure::new(
            MPI_ERR_ARG,
            format!("{name} has {negative}, which is negative"),
        )),
        None => Ok(weights.to_vec()),
    }
}

/// Returns this process's rank after reordering by all edges.
fn rank_by_edges(parent: &CommObject, edges: &[Edge]) -> Result<u32, Failure> {
    let weighed = edges
        .iter()
        .map(|(from, to, weight)| (*from, *to, u64::try_from(*weight).unwrap_or(0)));
    let wires = Wires::new(parent.comm.size(), weighed);
    let placed_rank = new_rank(parent, &wires, None)?;
    // Every member has one: the graph has one vertex per member.
    Ok(placed_rank.unwrap_or(parent.comm.rank()))
}

pub unsafe fn MPI_Dist_graph_create_adjacent(
    comm_old: MPI_Comm,
    indegree: c_int,
    sources: *const c_int,
    sourceweights: *const c_int,
    outdegree: c_int,
    destinations: *const c_int,
    destweights: *const c_int,
    info: MPI_Info,
    reorder: c_int,
    comm_dist_graph: *mut MPI_Comm,
) -> Outcome {
    let parent = parent_of(comm_old)?;
    let hints = info::hints(info)?;
    let size = parent.comm.size();
    let (indegree, outdegree) = (
        length(indegree, "indegree")?,
        length(outdegree, "outdegree")?,
    );
    if is_unweighted(sourceweights) != is_unweighted(destweights) {
        return Err(Failure::new(
            MPI_ERR_ARG,
            "one of sourceweights and destweights is MPI_UNWEIGHTED and the other is not",
        ));
    }
    // SAFETY: `sources`, `sourceweights`, `destinations`, `destweights` and `comm_dist_graph` are valid as the C binding of MPI_Dist_graph_create_adjacent requires of its caller.
    unsafe {
        let weights = (
            read_weights(sourceweights, indegree, "sourceweights")?,
            read_weights(destweights, outdegree, "destweights")?,
        );
        let mut graph = DistGraph {
            sources: DistGraph::ranks(&widened(sources, indegree, "sources")?, size)?,
            destinations: DistGraph::ranks(
                &widened(destinations, outdegree, "destinations")?,
                size,
            )?,
            weights: (!is_unweighted(sourceweights)).then_some(weights),
        };
        let mut place = parent.comm.rank();
        if reorder != 0 {
            let (into, from) = graph.edges(place);
            let (into, from) = (share(&parent, &into)?, share(&parent, &from)?);
            place = rank_by_edges(&parent, &from)?;
            graph = DistGraph::of_ends(place, &into, &from, graph.weights.is_some());
        }
        let new = arranged(&parent, Some(place), || Topology::DistGraph(graph))?;
        give_hints(new, &hints)?;
        out(comm_dist_graph, new, "comm_dist_graph")
    }
}

pub unsafe fn MPI_Dist_graph_create(
    comm_old: MPI_Comm,
    n: c_int,
    sources: *const c_int,
    degrees: *const c_int,
    destinations: *const c_int,
    weights: *const c_int,
    info: MPI_Info,
    reorder: c_int,
    comm_dist_graph: *mut MPI_Comm,
) -> Outcome {
    let parent = parent_of(comm_old)?;
    let hints = info::hints(info)?;
    let size = parent.comm.size();
    let n = length(n, "n")?;
    // SAFETY: `sources`, `degrees`, `destinations`, `weights` and `comm_dist_graph` are valid as the C binding of MPI_Dist_graph_create requires of its caller.
    unsafe {
        let sources = DistGraph::ranks(&widened(sources, n, "sources")?, size)?;
        let degrees = slice(degrees, n, "degrees")?
            .iter()
            .map(|degree| length(*degree, "one of degrees"))
            .collect::<Result<Vec<_>, _>>()?;
        let total = degrees.iter().sum();
        let destinations = DistGraph::ranks(&widened(destinations, total, "destinations")?, size)?;
        let given = read_weights(weights, total, "weights")?;
        let starts = sources
            .iter()
            .zip(&degrees)
            .flat_map(|(source, degree)| std::iter::repeat_n(*source, *degree));
        let mine: Vec<Edge> = starts
            .zip(destinations)
            .enumerate()
            .map(|(at, (from, to))| (from, to, given.get(at).copied().unwrap_or(0)))
            .collect();
        let all = share(&parent, &mine)?;
        let place = match reorder {
            0 => parent.comm.rank(),
            _ => rank_by_edges(&parent, &all)?,
        };
        let graph = DistGraph::of(place, &all, !is_unweighted(weights));
        let new = arranged(&parent, Some(place), || Topology::DistGraph(graph))?;
        give_hints(new, &hints)?;
        out(comm_dist_graph, new, "comm_dist_graph")
    }
}

/// Gathers the edges of all members on each of them, in rank order.
///
/// An allgather of the numbers of edges, then an allgather of blocks padded to the maximum number.
fn share(parent: &CommObject, mine: &[Edge]) -> Result<Vec<Edge>, Failure> {
    let engine = state::engine()?;
    let counts = engine.block_on(parent.comm.internal().share(&[mine.len() as u64]))?;
    let most = counts.iter().copied().max().unwrap_or(0) as usize;
    let mut words = vec![0; 2 * most];
    for (at, (from, to, weight)) in mine.iter().enumerate() {
        words[2 * at] = u64::from(*from) << 32 | u64::from(*to);
        words[2 * at + 1] = u64::from(*weight as u32);
    }
    let all = engine.block_on(parent.comm.internal().share(&words))?;
    let members = counts.iter().zip(all.chunks(words.len().max(1)));
    let edges = members.flat_map(|(count, words)| words.chunks(2).take(*count as usize));
    Ok(edges
        .map(|edge| {
            (
                (edge[0] >> 32) as u32,
                edge[0] as u32,
                edge[1] as u32 as i32,
            )
        })
        .collect())
}

pub unsafe fn MPI_Dist_graph_neighbors_count(
    comm: MPI_Comm,
    indegree: *mut c_int,
    outdegree: *mut c_int,
    weighted: *mut c_int,
) -> Outcome {
    let object = state::comm(comm)?;
    let graph = dist_graph(&object)?;
    // SAFETY: `indegree`, `outdegree` and `weighted` are null or writable: the C binding of MPI_Dist_graph_neighbors_count requires it of the caller.
    unsafe {
        out(indegree, graph.sources.len() as c_int, "indegree")?;
        out(outdegree, graph.destinations.len() as c_int, "outdegree")?;
        out(weighted, c_int::from(graph.weights.is_some()), "weighted")
    }
}

pub unsafe fn MPI_Dist_graph_neighbors(
    comm: MPI_Comm,
    maxindegree: c_int,
    sources: *mut c_int,
    sourceweights: *mut c_int,
    maxoutdegree: c_int,
    destinations: *mut c_int,
    destweights: *mut c_int,
) -> Outcome {
    let object = state::comm(comm)?;
    let graph = dist_graph(&object)?;
    let none = (Vec::new(), Vec::new());
    let (source_weights, dest_weights) = graph.weights.as_ref().unwrap_or(&none);
    let sides = [
        (
            maxindegree,
            sources,
            &graph.sources,
            sourceweights,
            source_weights,
        ),
        (
            maxoutdegree,
            destinations,
            &graph.destinations,
            destweights,
            dest_weights,
        ),
    ];
    for (max, to, ranks, to_weights, weights) in sides {
        let room = length(max, "a maximum degree")?;
        // SAFETY: `to` and `to_weights`, the arrays of one side, have `max` elements: the C binding of MPI_Dist_graph_neighbors requires it of the caller; weights may be MPI_UNWEIGHTED.
        unsafe {
            let to = slice_mut(to, ranks.len().min(room), "an array of neighbours")?;
            to.iter_mut()
                .zip(ranks)
                .for_each(|(to, rank)| *to = *rank as c_int);
            if !is_unweighted(to_weights) && to_weights.addr() != MPI_WEIGHTS_EMPTY.addr() {
                let to = slice_mut(to_weights, weights.len().min(room), "an array of weights")?;
                to.iter_mut()
                    .zip(weights)
                    .for_each(|(to, weight)| *to = *weight);
            }
        }
    }
    Ok(())
}
