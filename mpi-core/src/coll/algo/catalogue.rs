//! The algorithms by name, and running one of them on a call.
//!
//! Components choose from this list, as code or as data; the names are those of the files without their call,
//! as in `--mca coll_tuned_allreduce_algorithm ring`.

use super::reduction::Reduction;
use super::*;
use crate::coll::{Call, CallId, Cx};
use std::fmt;
use std::rc::Rc;

/// An algorithm of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Algorithm(&'static Entry);

/// What is known of an algorithm.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Entry {
    which: Which,
    name: &'static str,
    calls: &'static [CallId],
    order: Order,
}

/// In which order a reduction combines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Order {
    /// Operands in the order of ranks.
    Kept,
    /// Operands in an order of its own.
    Own,
    /// a0 op (a1 op (a2 op ...)), whatever the root.
    Fixed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Which {
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

/// Children of a node at each distance in a k-nomial tree, and one.
const RADIX: u32 = 4;

/// Bytes in a segment of what is pipelined.
const SEGMENT: i64 = 32 << 10;

/// Messages under way at once in a linear exchange.
const WINDOW: u32 = 32;

impl Algorithm {
    /// The algorithms that serve a call; the first serves it whatever its arguments.
    pub fn serving(call: CallId) -> impl Iterator<Item = Algorithm> {
        CATALOGUE
            .iter()
            .filter(move |e| e.calls.contains(&call))
            .map(Algorithm)
    }

    /// The algorithm of this name for a call.
    pub fn named(call: CallId, name: &str) -> Option<Algorithm> {
        Algorithm::serving(call).find(|a| a.name() == name)
    }

    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// Whether the algorithm keeps the promises of a call: operands keep their order unless the operator commutes.
    pub fn suits(self, call: &Call) -> bool {
        self.keeps_order() || commutes(call)
    }

    /// Whether it serves operators that do not commute.
    pub fn keeps_order(self) -> bool {
        self.0.order != Order::Own
    }

    /// Whether the algorithm computes one expression of its operands, the same as all others that do.
    pub fn is_fixed(self) -> bool {
        self.0.order == Order::Fixed
    }

    /// The algorithm of a call that is always there; with `fixed`, one that [`Algorithm::is_fixed`] if the call has any.
    pub fn usual(call: CallId, fixed: bool) -> Option<Algorithm> {
        let wanted = Algorithm::serving(call).find(|a| fixed && a.is_fixed());
        wanted.or_else(|| Algorithm::serving(call).next())
    }

    /// Carries a call out; one that the algorithm does not serve goes to the first that does.
    pub async fn run(self, cx: &Cx, call: &Call) -> Result<(), Error> {
        use Call::*;
        use Which::*;
        let size = cx.size();
        match (self.0.which, call) {
            (BarrierRecursiveDoubling, Barrier) => barrier_recursive_doubling::barrier(cx).await,
            (BarrierTree, Barrier) => barrier_tree::barrier(cx).await,
            (BarrierDoubleRing, Barrier) => barrier_double_ring::barrier(cx).await,
            (_, Barrier) => barrier_dissemination::barrier(cx).await,

            (BcastKnomial, Bcast { buf, root }) => {
                bcast_knomial::bcast(cx, buf, *root, RADIX).await
            }
            (BcastChain, Bcast { buf, root }) => bcast_chain::bcast(cx, buf, *root, SEGMENT).await,
            (BcastScatterAllgather, Bcast { buf, root }) => {
                bcast_scatter_allgather::bcast(cx, buf, *root).await
            }
            (_, Bcast { buf, root }) => bcast_binomial::bcast(cx, buf, *root).await,

            (GatherBinomial, Gather { send, recv, root }) => {
                gather_binomial::gather(cx, send.as_ref(), recv.as_ref(), *root).await
            }
            (_, Gather { send, recv, root }) => {
                let recv = recv.as_ref().map(|r| Blocks::equal(r, size));
                gather_linear::gather(cx, send.as_ref(), recv.as_ref(), *root).await
            }
            (_, Gatherv { send, recv, root }) => {
                let recv = recv.as_ref().map(Blocks::each);
                let (send, recv) = (send.as_ref(), recv.as_ref());
                match self.0.which {
                    GathervBinomial => gatherv_binomial::gather(cx, send, recv, *root).await,
                    _ => gather_linear::gather(cx, send, recv, *root).await,
                }
            }

            (ScatterBinomial, Scatter { send, recv, root }) => {
                scatter_binomial::scatter(cx, send.as_ref(), recv.as_ref(), *root).await
            }
            (_, Scatter { send, recv, root }) => {
                let send = send.as_ref().map(|s| Blocks::equal(s, size));
                scatter_linear::scatter(cx, send.as_ref(), recv.as_ref(), *root).await
            }
            (_, Scatterv { send, recv, root }) => {
                let send = send.as_ref().map(Blocks::each);
                let (send, recv) = (send.as_ref(), recv.as_ref());
                match self.0.which {
                    ScattervBinomial => scatterv_binomial::scatter(cx, send, recv, *root).await,
                    _ => scatter_linear::scatter(cx, send, recv, *root).await,
                }
            }

            (which, Allgather { send, recv }) => {
                allgather(which, cx, send.as_ref(), &Blocks::equal(recv, size)).await
            }
            (which, Allgatherv { send, recv }) => {
                allgather(which, cx, send.as_ref(), &Blocks::each(recv)).await
            }

            (AlltoallBruck, Alltoall { send, recv }) => {
                alltoall_bruck::alltoall(cx, send.as_ref(), recv).await
            }
            (which, Alltoall { send, recv }) => {
                let send = send.as_ref().map(|s| Blocks::equal(s, size));
                alltoall_blocks(which, cx, send, &Blocks::equal(recv, size)).await
            }
            (which, Alltoallv { send, recv } | Alltoallw { send, recv }) => {
                let send = send.as_ref().map(Blocks::each);
                alltoall_blocks(which, cx, send, &Blocks::each(recv)).await
            }

            (
                which,
                Reduce {
                    send,
                    recv,
                    op,
                    root,
                },
            ) => reduce(which, cx, send.as_ref(), recv.as_ref(), op, *root).await,

            (AllreduceRing, Allreduce { send, recv, op }) => {
                allreduce_ring::allreduce(cx, send.as_ref(), recv, op).await
            }
            (AllreduceSegmentedRing, Allreduce { send, recv, op }) => {
                allreduce_segmented_ring::allreduce(cx, send.as_ref(), recv, op, SEGMENT).await
            }
            (AllreduceRabenseifner, Allreduce { send, recv, op }) => {
                allreduce_rabenseifner::allreduce(cx, send.as_ref(), recv, op).await
            }
            (AllreduceReduceBcast, Allreduce { send, recv, op }) => {
                let reduction = Reduction::Binomial;
                allreduce_reduce_bcast::allreduce(cx, send.as_ref(), recv, op, reduction).await
            }
            (AllreduceLinear, Allreduce { send, recv, op }) => {
                let reduction = Reduction::Linear;
                allreduce_reduce_bcast::allreduce(cx, send.as_ref(), recv, op, reduction).await
            }
            (_, Allreduce { send, recv, op }) => {
                allreduce_recursive_doubling::allreduce(cx, send.as_ref(), recv, op).await
            }

            (
                which,
                ReduceScatter {
                    send,
                    recv,
                    counts,
                    op,
                },
            ) => reduce_scatter(which, cx, send.as_ref(), recv, counts, op).await,
            (which, ReduceScatterBlock { send, recv, op }) => {
                let counts: Rc<[i64]> = vec![recv.count(); size as usize].into();
                reduce_scatter(which, cx, send.as_ref(), recv, &counts, op).await
            }

            (_, Scan { send, recv, op }) => {
                scan_recursive_doubling::scan(cx, send.as_ref(), recv, op).await
            }
            (_, Exscan { send, recv, op }) => {
                exscan_recursive_doubling::exscan(cx, send.as_ref(), recv, op).await
            }

            (_, NeighborAllgather { near, send, recv }) => {
                let recv = Blocks::equal(recv, near.sources().len() as u32);
                let block = |block| recv.of(block as u32);
                neighbor_linear::exchange(cx, near, |_| send.clone(), block).await
            }
            (_, NeighborAllgatherv { near, send, recv }) => {
                let block = |block: usize| recv[block].clone();
                neighbor_linear::exchange(cx, near, |_| send.clone(), block).await
            }
            (_, NeighborAlltoall { near, send, recv }) => {
                let send = Blocks::equal(send, near.destinations().len() as u32);
                let recv = Blocks::equal(recv, near.sources().len() as u32);
                let going = |block| send.of(block as u32);
                let coming = |block| recv.of(block as u32);
                neighbor_linear::exchange(cx, near, going, coming).await
            }
            (
                _,
                NeighborAlltoallv { near, send, recv } | NeighborAlltoallw { near, send, recv },
            ) => {
                let going = |block: usize| send[block].clone();
                let coming = |block: usize| recv[block].clone();
                neighbor_linear::exchange(cx, near, going, coming).await
            }
        }
    }
}

async fn allgather(
    which: Which,
    cx: &Cx,
    send: Option<&SendBuf>,
    recv: &Blocks<RecvBuf>,
) -> Result<(), Error> {
    match which {
        Which::AllgatherBruck => allgather_bruck::allgather(cx, send, recv).await,
        Which::AllgatherRecursiveDoubling => {
            allgather_recursive_doubling::allgather(cx, send, recv).await
        }
        Which::AllgatherNeighborExchange => {
            allgather_neighbor_exchange::allgather(cx, send, recv).await
        }
        _ => allgather_ring::allgather(cx, send, recv).await,
    }
}

async fn reduce(
    which: Which,
    cx: &Cx,
    send: Option<&SendBuf>,
    recv: Option<&RecvBuf>,
    op: &Op,
    root: u32,
) -> Result<(), Error> {
    match which {
        Which::ReduceLinear => reduce_linear::reduce(cx, send, recv, op, root).await,
        Which::ReduceInOrder => reduce_in_order::reduce(cx, send, recv, op, root, SEGMENT).await,
        Which::ReducePipeline => reduce_pipeline::reduce(cx, send, recv, op, root, SEGMENT).await,
        Which::ReduceRabenseifner => reduce_rabenseifner::reduce(cx, send, recv, op, root).await,
        _ => reduce_binomial::reduce(cx, send, recv, op, root).await,
    }
}

async fn alltoall_blocks(
    which: Which,
    cx: &Cx,
    send: Option<Blocks<SendBuf>>,
    recv: &Blocks<RecvBuf>,
) -> Result<(), Error> {
    match which {
        Which::AlltoallPairwise => alltoall_pairwise::alltoall(cx, send, recv).await,
        Which::AlltoallvBruck => alltoallv_bruck::alltoall(cx, send, recv).await,
        _ => alltoall_linear::alltoall(cx, send, recv, WINDOW).await,
    }
}

async fn reduce_scatter(
    which: Which,
    cx: &Cx,
    send: Option<&SendBuf>,
    recv: &RecvBuf,
    counts: &[i64],
    op: &Op,
) -> Result<(), Error> {
    match which {
        Which::ReduceScatterRing => {
            reduce_scatter_ring::reduce_scatter(cx, send, recv, counts, op, SEGMENT).await
        }
        Which::ReduceScatterButterfly => {
            reduce_scatter_butterfly::reduce_scatter(cx, send, recv, counts, op).await
        }
        Which::ReduceScatterHalving => {
            reduce_scatter_halving::reduce_scatter(cx, send, recv, counts, op).await
        }
        Which::ReduceScatterPairwise => {
            reduce_scatter_pairwise::reduce_scatter(cx, send, recv, counts, op).await
        }
        Which::ReduceScatterLinear => {
            let reduction = Reduction::Linear;
            reduce_scatter_reduce::reduce_scatter(cx, send, recv, counts, op, reduction).await
        }
        _ => {
            let reduction = Reduction::Binomial;
            reduce_scatter_reduce::reduce_scatter(cx, send, recv, counts, op, reduction).await
        }
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
    fn the_readme_knows_how_many_there_are() {
        let readme = include_str!("../../../../README.md");
        let said = format!("tuned ({} algorithms, each once)", CATALOGUE.len());
        assert!(readme.contains(&said), "the README does not say: {said}");
    }
}
