//! Execution of an algorithm of the [catalogue](super::catalogue) on a call.

use super::catalogue::Which;
use super::reduction::Reduction;
use super::*;
use crate::{Call, Invocation};
use std::rc::Rc;

/// The radix of k-nomial trees: one plus the number of a node's children at each distance.
const RADIX: u32 = 4;

/// The segment size of pipelines, in bytes.
const SEGMENT: i64 = 32 << 10;

/// The number of messages in progress at once in a linear exchange.
const WINDOW: u32 = 32;

impl Algorithm {
    /// Carries out a call; if the algorithm does not serve it, with the first that does.
    ///
    /// After a length mismatch it continues, and fails at its end: see [`length_mismatch`](crate::length_mismatch).
    pub async fn run(self, cx: &Invocation, call: &Call) -> Result<(), Error> {
        match cx.checked_for_lengths() {
            Some(cx) => cx.verdict(self.carry_out(&cx, call).await),
            None => self.carry_out(cx, call).await,
        }
    }

    async fn carry_out(self, cx: &Invocation, call: &Call) -> Result<(), Error> {
        use Call::*;
        use Which::*;
        let size = cx.size();
        match (self.which(), call) {
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
                match self.which() {
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
                match self.which() {
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
    cx: &Invocation,
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
    cx: &Invocation,
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
    cx: &Invocation,
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
    cx: &Invocation,
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
