//! Catalogue of the collective algorithms by name; [`super::run`] runs one of them for a call.
//!
//! Components choose an algorithm in code, or by a name from a parameter or file.
//! An algorithm's name is its file name without the collective's name,
//! as in `--mca coll_tuned_allreduce_algorithm ring`.

use crate::{Call, CallId};
use std::fmt;

/// An algorithm of the catalogue, for one or several collectives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Algorithm(&'static Entry);

#[derive(Debug, PartialEq, Eq, Hash)]
struct Entry {
    which: Which,
    name: &'static str,
    calls: &'static [CallId],
    order: Order,
}

/// The order in which a reduction combines operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Order {
    /// In the order of ranks.
    Kept,
    /// In an order other than that of ranks, so the operator must commute.
    Own,
    /// In the order of ranks, and always as a0 op (a1 op (a2 op ...)), for every root.
    Fixed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Which {
    BarrierDissemination,
    BarrierRecursiveDoubling,
    BarrierTree,
    BarrierDoubleRing,
    BcastBinomial,
    BcastKnomial,
    BcastChain,
    BcastScatterAllgather,
    GatherBinomial,
    GatherLinear,
    GathervBinomial,
    ScatterBinomial,
    ScatterLinear,
    ScattervBinomial,
    AllgatherBruck,
    AllgatherRecursiveDoubling,
    AllgatherRing,
    AllgatherNeighborExchange,
    AlltoallBruck,
    AlltoallLinear,
    AlltoallPairwise,
    AlltoallvBruck,
    ReduceBinomial,
    ReduceLinear,
    ReduceInOrder,
    ReducePipeline,
    ReduceRabenseifner,
    AllreduceRecursiveDoubling,
    AllreduceReduceBcast,
    AllreduceLinear,
    AllreduceRing,
    AllreduceSegmentedRing,
    AllreduceRabenseifner,
    ReduceScatterReduce,
    ReduceScatterLinear,
    ReduceScatterHalving,
    ReduceScatterPairwise,
    ReduceScatterRing,
    ReduceScatterButterfly,
    ScanRecursiveDoubling,
    ExscanRecursiveDoubling,
    NeighborLinear,
}

const fn entry(which: Which, name: &'static str, calls: &'static [CallId]) -> Entry {
    Entry {
        which,
        name,
        calls,
        order: Order::Kept,
    }
}

const fn reordering(which: Which, name: &'static str, calls: &'static [CallId]) -> Entry {
    Entry {
        which,
        name,
        calls,
        order: Order::Own,
    }
}

const fn fixed(which: Which, name: &'static str, calls: &'static [CallId]) -> Entry {
    Entry {
        which,
        name,
        calls,
        order: Order::Fixed,
    }
}

use CallId as C;
use Which as W;

static CATALOGUE: [Entry; 42] = [
    entry(W::BarrierDissemination, "dissemination", &[C::Barrier]),
    entry(
        W::BarrierRecursiveDoubling,
        "recursive_doubling",
        &[C::Barrier],
    ),
    entry(W::BarrierTree, "tree", &[C::Barrier]),
    entry(W::BarrierDoubleRing, "double_ring", &[C::Barrier]),
    entry(W::BcastBinomial, "binomial", &[C::Bcast]),
    entry(W::BcastKnomial, "knomial", &[C::Bcast]),
    entry(W::BcastChain, "chain", &[C::Bcast]),
    entry(W::BcastScatterAllgather, "scatter_allgather", &[C::Bcast]),
    entry(W::GatherLinear, "linear", &[C::Gather, C::Gatherv]),
    entry(W::GatherBinomial, "binomial", &[C::Gather]),
    entry(W::GathervBinomial, "binomial", &[C::Gatherv]),
    entry(W::ScatterLinear, "linear", &[C::Scatter, C::Scatterv]),
    entry(W::ScatterBinomial, "binomial", &[C::Scatter]),
    entry(W::ScattervBinomial, "binomial", &[C::Scatterv]),
    entry(W::AllgatherRing, "ring", &[C::Allgather, C::Allgatherv]),
    entry(W::AllgatherBruck, "bruck", &[C::Allgather, C::Allgatherv]),
    entry(
        W::AllgatherRecursiveDoubling,
        "recursive_doubling",
        &[C::Allgather, C::Allgatherv],
    ),
    entry(
        W::AllgatherNeighborExchange,
        "neighbor_exchange",
        &[C::Allgather, C::Allgatherv],
    ),
    entry(
        W::AlltoallLinear,
        "linear",
        &[C::Alltoall, C::Alltoallv, C::Alltoallw],
    ),
    entry(
        W::AlltoallPairwise,
        "pairwise",
        &[C::Alltoall, C::Alltoallv, C::Alltoallw],
    ),
    entry(W::AlltoallBruck, "bruck", &[C::Alltoall]),
    entry(W::AlltoallvBruck, "bruck", &[C::Alltoallv, C::Alltoallw]),
    entry(W::ReduceBinomial, "binomial", &[C::Reduce]),
    fixed(W::ReduceLinear, "linear", &[C::Reduce]),
    entry(W::ReduceInOrder, "in_order", &[C::Reduce]),
    entry(W::ReducePipeline, "pipeline", &[C::Reduce]),
    reordering(W::ReduceRabenseifner, "rabenseifner", &[C::Reduce]),
    entry(
        W::AllreduceRecursiveDoubling,
        "recursive_doubling",
        &[C::Allreduce],
    ),
    entry(W::AllreduceReduceBcast, "reduce_bcast", &[C::Allreduce]),
    fixed(W::AllreduceLinear, "linear", &[C::Allreduce]),
    reordering(W::AllreduceRing, "ring", &[C::Allreduce]),
    reordering(W::AllreduceSegmentedRing, "segmented_ring", &[C::Allreduce]),
    reordering(W::AllreduceRabenseifner, "rabenseifner", &[C::Allreduce]),
    entry(
        W::ReduceScatterReduce,
        "reduce",
        &[C::ReduceScatter, C::ReduceScatterBlock],
    ),
    fixed(
        W::ReduceScatterLinear,
        "linear",
        &[C::ReduceScatter, C::ReduceScatterBlock],
    ),
    reordering(
        W::ReduceScatterHalving,
        "halving",
        &[C::ReduceScatter, C::ReduceScatterBlock],
    ),
    reordering(
        W::ReduceScatterPairwise,
        "pairwise",
        &[C::ReduceScatter, C::ReduceScatterBlock],
    ),
    reordering(
        W::ReduceScatterRing,
        "ring",
        &[C::ReduceScatter, C::ReduceScatterBlock],
    ),
    entry(
        W::ReduceScatterButterfly,
        "butterfly",
        &[C::ReduceScatter, C::ReduceScatterBlock],
    ),
    entry(W::ScanRecursiveDoubling, "recursive_doubling", &[C::Scan]),
    entry(
        W::ExscanRecursiveDoubling,
        "recursive_doubling",
        &[C::Exscan],
    ),
    entry(
        W::NeighborLinear,
        "linear",
        &[
            C::NeighborAllgather,
            C::NeighborAllgatherv,
            C::NeighborAlltoall,
            C::NeighborAlltoallv,
            C::NeighborAlltoallw,
        ],
    ),
];

impl Algorithm {
    /// The algorithms that implement a collective; the first of them accepts any arguments.
    pub fn serving(call: CallId) -> impl Iterator<Item = Algorithm> {
        CATALOGUE
            .iter()
            .filter(move |e| e.calls.contains(&call))
            .map(Algorithm)
    }

    /// Returns the algorithm with this name for a collective.
    pub fn named(call: CallId, name: &str) -> Option<Algorithm> {
        Algorithm::serving(call).find(|a| a.name() == name)
    }

    /// Returns the algorithm's name in parameter values, such as "ring".
    /// The name is the same for all collectives that the algorithm implements.
    pub fn name(self) -> &'static str {
        self.0.name
    }

    pub(super) fn which(self) -> Which {
        self.0.which
    }

    /// Returns true if the algorithm gives a correct result for a call: it keeps the order of operands, or the operator commutes.
    pub fn suits(self, call: &Call) -> bool {
        self.keeps_order() || commutes(call)
    }

    /// Returns true if the algorithm keeps the order of operands, so the operator need not commute.
    pub fn keeps_order(self) -> bool {
        self.0.order != Order::Own
    }

    /// Returns true if the algorithm evaluates reductions in the fixed order a0 op (a1 op (a2 op ...)), that is, its order is `Fixed`.
    pub fn is_fixed(self) -> bool {
        self.0.order == Order::Fixed
    }

    /// Returns the default algorithm of a collective.
    /// With `fixed`, returns the first algorithm for which [`Algorithm::is_fixed`] is true, if there is one.
    pub fn usual(call: CallId, fixed: bool) -> Option<Algorithm> {
        let wanted = Algorithm::serving(call).find(|a| fixed && a.is_fixed());
        wanted.or_else(|| Algorithm::serving(call).next())
    }
}

fn commutes(call: &Call) -> bool {
    match call {
        Call::Reduce { op, .. }
        | Call::Allreduce { op, .. }
        | Call::ReduceScatter { op, .. }
        | Call::ReduceScatterBlock { op, .. }
        | Call::Scan { op, .. }
        | Call::Exscan { op, .. } => op.is_commutative(),
        _ => true,
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_has_an_algorithm_for_all_arguments_and_no_two_of_a_name() {
        for call in CallId::ALL {
            let all: Vec<Algorithm> = Algorithm::serving(call).collect();
            assert!(all[0].0.order != Order::Own, "{call}");
            for a in &all {
                assert_eq!(Algorithm::named(call, a.name()), Some(*a));
            }
        }
    }

    #[test]
    fn the_documents_know_how_many_there_are() {
        let page = include_str!("../../../../docs/works.md");
        let said = format!("tuned ({} algorithms, each once)", CATALOGUE.len());
        assert!(page.contains(&said), "docs/works.md does not say: {said}");
    }
}
