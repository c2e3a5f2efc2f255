//! Distributed graph topologies: each process knows its own edges (section 8.5.4).
#![allow(unsafe_code)]

use super::{arranged, give_hints, lacks, new_rank, parent_of};
use crate::abi::*;
use crate::api::args::{InArray, InOutArray, Out, Uncounted, length};
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

/// Reads the weights of edges. `MPI_UNWEIGHTED` gives an empty list.
fn read_weights(weights: InArray<c_int>, name: &str) -> Result<Vec<i32>, Failure> {
    let len = weights.len();
    if is_unweighted(weights.address()) || len == 0 {
        return Ok(Vec::new());
    }
    if weights.address().addr() == MPI_WEIGHTS_EMPTY.addr() {
        return Err(Failure::new(
            MPI_ERR_ARG,
            format!("{name} is MPI_WEIGHTS_EMPTY, but there are {len} edges"),
        ));
    }
    let weights = weights.get(name)?;
    match weights.iter().find(|weight| **weight < 0) {
        Some(negative) => Err(Failure::new(
            MPI_ERR_ARG,
            format!("{name} has {negative}, which is negative"),
        )),
        None => Ok(weights.to_vec()),
    }
}

/// Returns this process's rank after a reordering by the edges of the graph.
fn rank_by_edges(parent: &CommObject, edges: &[Edge]) -> Result<u32, Failure> {
    let weighed = edges
        .iter()
        .map(|(from, to, weight)| (*from, *to, u64::try_from(*weight).unwrap_or(0)));
    let wires = Wires::new(parent.comm.size(), weighed);
    let placed_rank = new_rank(parent, &wires, None)?;
    // The graph has one vertex per member, so every member has a rank.
    Ok(placed_rank.unwrap_or(parent.comm.rank()))
}

pub fn MPI_Dist_graph_create_adjacent(
    comm_old: MPI_Comm,
    indegree: c_int,
    sources: InArray<c_int>,
    sourceweights: InArray<c_int>,
    outdegree: c_int,
    destinations: InArray<c_int>,
    destweights: InArray<c_int>,
    info: MPI_Info,
    reorder: c_int,
    comm_dist_graph: Out<MPI_Comm>,
) -> Outcome {
    let parent = parent_of(comm_old)?;
    let hints = info::hints(info)?;
    let size = parent.comm.size();
    length(indegree, "indegree")?;
    length(outdegree, "outdegree")?;
    let has_no_weights = is_unweighted(sourceweights.address());
    if has_no_weights != is_unweighted(destweights.address()) {
        return Err(Failure::new(
            MPI_ERR_ARG,
            "one of sourceweights and destweights is MPI_UNWEIGHTED and the other is not",
        ));
    }
    let weights = (
        read_weights(sourceweights, "sourceweights")?,
        read_weights(destweights, "destweights")?,
    );
    let mut graph = DistGraph {
        sources: DistGraph::ranks(&sources.widened("sources")?, size)?,
        destinations: DistGraph::ranks(&destinations.widened("destinations")?, size)?,
        weights: (!has_no_weights).then_some(weights),
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
    comm_dist_graph.set(new, "comm_dist_graph")
}

pub fn MPI_Dist_graph_create(
    comm_old: MPI_Comm,
    n: c_int,
    sources: InArray<c_int>,
    degrees: InArray<c_int>,
    destinations: Uncounted<c_int>,
    weights: Uncounted<c_int>,
    info: MPI_Info,
    reorder: c_int,
    comm_dist_graph: Out<MPI_Comm>,
) -> Outcome {
    let parent = parent_of(comm_old)?;
    let hints = info::hints(info)?;
    let size = parent.comm.size();
    length(n, "n")?;
    let sources = DistGraph::ranks(&sources.widened("sources")?, size)?;
    let degrees = degrees
        .get("degrees")?
        .iter()
        .map(|degree| length(*degree, "one of degrees"))
        .collect::<Result<Vec<_>, _>>()?;
    let total = degrees.iter().sum();
    let has_weights = !is_unweighted(weights.address());
    // SAFETY: both arrays have one element per edge: `degrees` sums to `total` (section 8.5.4).
    let (destinations, weights) = unsafe { (destinations.counted(total), weights.counted(total)) };
    let destinations = DistGraph::ranks(&destinations.widened("destinations")?, size)?;
    let given = read_weights(weights, "weights")?;
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
    let graph = DistGraph::of(place, &all, has_weights);
    let new = arranged(&parent, Some(place), || Topology::DistGraph(graph))?;
    give_hints(new, &hints)?;
    comm_dist_graph.set(new, "comm_dist_graph")
}

/// Gathers the edges of all members on every member, in rank order.
///
/// Two allgathers: of the edge counts, and of the edges padded to the maximum count.
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

pub fn MPI_Dist_graph_neighbors_count(
    comm: MPI_Comm,
    indegree: Out<c_int>,
    outdegree: Out<c_int>,
    weighted: Out<c_int>,
) -> Outcome {
    let object = state::comm(comm)?;
    let graph = dist_graph(&object)?;
    indegree.set(graph.sources.len() as c_int, "indegree")?;
    outdegree.set(graph.destinations.len() as c_int, "outdegree")?;
    weighted.set(c_int::from(graph.weights.is_some()), "weighted")
}

pub fn MPI_Dist_graph_neighbors(
    comm: MPI_Comm,
    maxindegree: c_int,
    sources: InOutArray<c_int>,
    sourceweights: InOutArray<c_int>,
    maxoutdegree: c_int,
    destinations: InOutArray<c_int>,
    destweights: InOutArray<c_int>,
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
        length(max, "a maximum degree")?;
        let to = to.up_to(ranks.len()).get("an array of neighbours")?;
        to.iter_mut()
            .zip(ranks)
            .for_each(|(to, rank)| *to = *rank as c_int);
        let address = to_weights.address();
        if !is_unweighted(address) && address.addr() != MPI_WEIGHTS_EMPTY.addr() {
            let to = to_weights.up_to(weights.len()).get("an array of weights")?;
            to.iter_mut()
                .zip(weights)
                .for_each(|(to, weight)| *to = *weight);
        }
    }
    Ok(())
}
