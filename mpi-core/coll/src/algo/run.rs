//! Execution of an algorithm of the [catalogue](super::catalogue) for a call.

use super::catalogue::Which;
use super::reduction::Reduction;
use super::*;
use crate::{Call, Invocation};
use std::rc::Rc;

/// Radix of k-nomial trees: one plus the number of children to which a rank sends in each round.
const RADIX: u32 = 4;

/// Segment size of pipelines, in bytes.
const SEGMENT: i64 = 32 << 10;

/// Maximum number of messages in progress in a linear exchange.
const WINDOW: u32 = 32;

impl Algorithm {
    /// Carries out a call; if this algorithm does not accept it, uses the first algorithm of the catalogue that accepts it.
    ///
    /// After a length mismatch the call continues and fails at its end: see [`length_mismatch`](crate::length_mismatch).
    pub async fn run(self, invocation: &Invocation, call: &Call) -> Result<(), Error> {
        match invocation.checked_for_lengths() {
            Some(invocation) => invocation.verdict(self.carry_out(&invocation, call).await),
            None => self.carry_out(invocation, call).await,
        }
    }

    async fn carry_out(self, invocation: &Invocation, call: &Call) -> Result<(), Error> {
        use Call::*;
        use Which::*;
        let size = invocation.size();
        match (self.which(), call) {
            (BarrierRecursiveDoubling, Barrier) => {
                barrier_recursive_doubling::barrier(invocation).await
            }
            (BarrierTree, Barrier) => barrier_tree::barrier(invocation).await,
            (BarrierDoubleRing, Barrier) => barrier_double_ring::barrier(invocation).await,
            (_, Barrier) => barrier_dissemination::barrier(invocation).await,

            (BcastKnomial, Bcast { buf, root }) => {
                bcast_knomial::bcast(invocation, buf, *root, RADIX).await
            }
            (BcastChain, Bcast { buf, root }) => {
                bcast_chain::bcast(invocation, buf, *root, SEGMENT).await
            }
            (BcastScatterAllgather, Bcast { buf, root }) => {
                bcast_scatter_allgather::bcast(invocation, buf, *root).await
            }
            (_, Bcast { buf, root }) => bcast_binomial::bcast(invocation, buf, *root).await,

            (GatherBinomial, Gather { send, recv, root }) => {
                gather_binomial::gather(invocation, send.as_ref(), recv.as_ref(), *root).await
            }
            (_, Gather { send, recv, root }) => {
                let recv = recv.as_ref().map(|r| Blocks::equal(r, size));
                gather_linear::gather(invocation, send.as_ref(), recv.as_ref(), *root).await
            }
            (_, Gatherv { send, recv, root }) => {
                let recv = recv.as_ref().map(Blocks::each);
                let (send, recv) = (send.as_ref(), recv.as_ref());
                match self.which() {
                    GathervBinomial => {
                        gatherv_binomial::gather(invocation, send, recv, *root).await
                    }
                    _ => gather_linear::gather(invocation, send, recv, *root).await,
                }
            }

            (ScatterBinomial, Scatter { send, recv, root }) => {
                scatter_binomial::scatter(invocation, send.as_ref(), recv.as_ref(), *root).await
            }
            (_, Scatter { send, recv, root }) => {
                let send = send.as_ref().map(|s| Blocks::equal(s, size));
                scatter_linear::scatter(invocation, send.as_ref(), recv.as_ref(), *root).await
            }
            (_, Scatterv { send, recv, root }) => {
                let send = send.as_ref().map(Blocks::each);
                let (send, recv) = (send.as_ref(), recv.as_ref());
                match self.which() {
                    ScattervBinomial => {
                        scatterv_binomial::scatter(invocation, send, recv, *root).await
                    }
                    _ => scatter_linear::scatter(invocation, send, recv, *root).await,
                }
            }

            (which, Allgather { send, recv }) => {
                allgather(which, invocation, send.as_ref(), &Blocks::equal(recv, size)).await
            }
            (which, Allgatherv { send, recv }) => {
                allgather(which, invocation, send.as_ref(), &Blocks::each(recv)).await
            }

            (AlltoallBruck, Alltoall { send, recv }) => {
                alltoall_bruck::alltoall(invocation, send.as_ref(), recv).await
            }
            (which, Alltoall { send, recv }) => {
                let send = send.as_ref().map(|s| Blocks::equal(s, size));
                alltoall_blocks(which, invocation, send, &Blocks::equal(recv, size)).await
            }
            (which, Alltoallv { send, recv } | Alltoallw { send, recv }) => {
                let send = send.as_ref().map(Blocks::each);
                alltoall_blocks(which, invocation, send, &Blocks::each(recv)).await
            }

            (
                which,
                Reduce {
                    send,
                    recv,
                    op,
                    root,
                },
            ) => reduce(which, invocation, send.as_ref(), recv.as_ref(), op, *root).await,

            (AllreduceRing, Allreduce { send, recv, op }) => {
                allreduce_ring::allreduce(invocation, send.as_ref(), recv, op).await
            }
            (AllreduceSegmentedRing, Allreduce { send, recv, op }) => {
                allreduce_segmented_ring::allreduce(invocation, send.as_ref(), recv, op, SEGMENT)
                    .await
            }
            (AllreduceRabenseifner, Allreduce { send, recv, op }) => {
                allreduce_rabenseifner::allreduce(invocation, send.as_ref(), recv, op).await
            }
            (AllreduceReduceBcast, Allreduce { send, recv, op }) => {
                let reduction = Reduction::Binomial;
                allreduce_reduce_bcast::allreduce(invocation, send.as_ref(), recv, op, reduction)
                    .await
            }
            (AllreduceLinear, Allreduce { send, recv, op }) => {
                let reduction = Reduction::Linear;
                allreduce_reduce_bcast::allreduce(invocation, send.as_ref(), recv, op, reduction)
                    .await
            }
            (_, Allreduce { send, recv, op }) => {
                allreduce_recursive_doubling::allreduce(invocation, send.as_ref(), recv, op).await
            }

            (
                which,
                ReduceScatter {
                    send,
                    recv,
                    counts,
                    op,
                },
            ) => reduce_scatter(which, invocation, send.as_ref(), recv, counts, op).await,
            (which, ReduceScatterBlock { send, recv, op }) => {
                let counts: Rc<[i64]> = vec![recv.count(); size as usize].into();
                reduce_scatter(which, invocation, send.as_ref(), recv, &counts, op).await
            }

            (_, Scan { send, recv, op }) => {
                scan_recursive_doubling::scan(invocation, send.as_ref(), recv, op).await
            }
            (_, Exscan { send, recv, op }) => {
                exscan_recursive_doubling::exscan(invocation, send.as_ref(), recv, op).await
            }

            (
                _,
                NeighborAllgather {
                    neighbours,
                    send,
                    recv,
                },
            ) => {
                let recv = Blocks::equal(recv, neighbours.sources().len() as u32);
                let block = |block| recv.of(block as u32);
                neighbor_linear::exchange(invocation, neighbours, |_| send.clone(), block).await
            }
            (
                _,
                NeighborAllgatherv {
                    neighbours,
                    send,
                    recv,
                },
            ) => {
                let block = |block: usize| recv[block].clone();
                neighbor_linear::exchange(invocation, neighbours, |_| send.clone(), block).await
            }
            (
                _,
                NeighborAlltoall {
                    neighbours,
                    send,
                    recv,
                },
            ) => {
                let send = Blocks::equal(send, neighbours.destinations().len() as u32);
                let recv = Blocks::equal(recv, neighbours.sources().len() as u32);
                let going = |block| send.of(block as u32);
                let coming = |block| recv.of(block as u32);
                neighbor_linear::exchange(invocation, neighbours, going, coming).await
            }
            (
                _,
                NeighborAlltoallv {
                    neighbours,
                    send,
                    recv,
                }
                | NeighborAlltoallw {
                    neighbours,
                    send,
                    recv,
                },
            ) => {
                let going = |block: usize| send[block].clone();
                let coming = |block: usize| recv[block].clone();
                neighbor_linear::exchange(invocation, neighbours, going, coming).await
            }
        }
    }
}

async fn allgather(
    which: Which,
    invocation: &Invocation,
    send: Option<&SendBuf>,
    recv: &Blocks<RecvBuf>,
) -> Result<(), Error> {
    match which {
        Which::AllgatherBruck => allgather_bruck::allgather(invocation, send, recv).await,
        Which::AllgatherRecursiveDoubling => {
            allgather_recursive_doubling::allgather(invocation, send, recv).await
        }
        Which::AllgatherNeighborExchange => {
            allgather_neighbor_exchange::allgather(invocation, send, recv).await
        }
        _ => allgather_ring::allgather(invocation, send, recv).await,
    }
}

async fn reduce(
    which: Which,
    invocation: &Invocation,
    send: Option<&SendBuf>,
    recv: Option<&RecvBuf>,
    op: &Op,
    root: u32,
) -> Result<(), Error> {
    match which {
        Which::ReduceLinear => reduce_linear::reduce(invocation, send, recv, op, root).await,
        Which::ReduceInOrder => {
            reduce_in_order::reduce(invocation, send, recv, op, root, SEGMENT).await
        }
        Which::ReducePipeline => {
            reduce_pipeline::reduce(invocation, send, recv, op, root, SEGMENT).await
        }
        Which::ReduceRabenseifner => {
            reduce_rabenseifner::reduce(invocation, send, recv, op, root).await
        }
        _ => reduce_binomial::reduce(invocation, send, recv, op, root).await,
    }
}

async fn alltoall_blocks(
    which: Which,
    invocation: &Invocation,
    send: Option<Blocks<SendBuf>>,
    recv: &Blocks<RecvBuf>,
) -> Result<(), Error> {
    match which {
        Which::AlltoallPairwise => alltoall_pairwise::alltoall(invocation, send, recv).await,
        Which::AlltoallvBruck => alltoallv_bruck::alltoall(invocation, send, recv).await,
        _ => alltoall_linear::alltoall(invocation, send, recv, WINDOW).await,
    }
}

async fn reduce_scatter(
    which: Which,
    invocation: &Invocation,
    send: Option<&SendBuf>,
    recv: &RecvBuf,
    counts: &[i64],
    op: &Op,
) -> Result<(), Error> {
    match which {
        Which::ReduceScatterRing => {
            reduce_scatter_ring::reduce_scatter(invocation, send, recv, counts, op, SEGMENT).await
        }
        Which::ReduceScatterButterfly => {
            reduce_scatter_butterfly::reduce_scatter(invocation, send, recv, counts, op).await
        }
        Which::ReduceScatterHalving => {
            reduce_scatter_halving::reduce_scatter(invocation, send, recv, counts, op).await
        }
        Which::ReduceScatterPairwise => {
            reduce_scatter_pairwise::reduce_scatter(invocation, send, recv, counts, op).await
        }
        Which::ReduceScatterLinear => {
            let reduction = Reduction::Linear;
            reduce_scatter_reduce::reduce_scatter(invocation, send, recv, counts, op, reduction)
                .await
        }
        _ => {
            let reduction = Reduction::Binomial;
            reduce_scatter_reduce::reduce_scatter(invocation, send, recv, counts, op, reduction)
                .await
        }
    }
}
