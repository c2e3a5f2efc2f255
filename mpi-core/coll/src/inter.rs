//! `inter`: the collectives of intercommunicators (MPI 5.0, section 6.2.3).
//!
//! The data of one group are received by the other group.
//! Each operation is composed of intracommunicator algorithms, run inside a group, and messages between the groups:
//! between the two leaders, the groups' ranks 0, where one message can serve a whole group;
//! between every two members of different groups where every member receives different data.
//! An invocation has the same number in both groups, and on each group's own communicator.
//!
//! `root` is the root's rank in the remote group on the ranks that exchange data with it, [`ROOT`] on the root itself,
//! and [`PROC_NULL`] on the other ranks of the root's group, which take no part in the operation.

use super::algo::{
    self, Blocks, barrier_dissemination, bcast_binomial, reduce_binomial, scatter_linear,
};
use super::{Call, CallId, CallSet, Invocation, Module, Running};
use crate::Error;
use crate::datatype::{RecvBuf, SendBuf};
use crate::op::Op;

/// The value of `root` for `MPI_ROOT`.
pub const ROOT: u32 = -4_i32 as u32;
/// The value of `root` for `MPI_PROC_NULL`.
pub const PROC_NULL: u32 = crate::request::PROC_NULL as u32;

const LEADER: u32 = 0;

/// Prefix reductions do not exist between groups (sections 6.11.1 and 6.11.2), and intercommunicators have no topology.
const SERVES_NOT: [CallId; 7] = [
    CallId::Scan,
    CallId::Exscan,
    CallId::NeighborAllgather,
    CallId::NeighborAllgatherv,
    CallId::NeighborAlltoall,
    CallId::NeighborAlltoallv,
    CallId::NeighborAlltoallw,
];

/// The module; it is stateless.
pub struct Inter;

impl Module for Inter {
    fn serves(&self) -> CallSet {
        let all = CallId::ALL.into_iter();
        all.filter(|c| !SERVES_NOT.contains(c))
            .fold(CallSet::NONE, CallSet::with)
    }

    fn start(&self, cx: Invocation, call: Call) -> Running {
        Box::pin(carry_out(cx, call))
    }
}

/// After a length mismatch both groups continue to the end: see [`length_mismatch`](super::length_mismatch).
async fn carry_out(cx: Invocation, call: Call) -> Result<(), Error> {
    let cx = cx.checked_for_lengths().unwrap_or(cx);
    let outcome = between(&cx, call).await;
    cx.verdict(outcome)
}

async fn between(cx: &Invocation, call: Call) -> Result<(), Error> {
    let here = cx.inside(call.id().name())?;
    let remote = cx.comm().peers().size();
    match call {
        Call::Barrier => barrier(cx, &here).await,
        Call::Bcast { buf, root } => bcast(cx, &here, &buf, root).await,
        Call::Gather { send, recv, root } => {
            let recv = recv.map(|r| Blocks::equal(&r, remote));
            to_root(cx, send, recv, root).await
        }
        Call::Gatherv { send, recv, root } => to_root(cx, send, recv.map(Blocks::Each), root).await,
        Call::Scatter { send, recv, root } => {
            let send = send.map(|s| Blocks::equal(&s, remote));
            from_root(cx, send, recv, root).await
        }
        Call::Scatterv { send, recv, root } => {
            from_root(cx, send.map(Blocks::Each), recv, root).await
        }
        Call::Allgather { send, recv } => {
            let recv = Blocks::equal(&recv, remote);
            exchange(cx, |_| send.clone(), recv).await
        }
        Call::Allgatherv { send, recv } => exchange(cx, |_| send.clone(), Blocks::Each(recv)).await,
        Call::Alltoall { send, recv } => {
            let send = send.map(|s| Blocks::equal(&s, remote));
            let block = |r| send.as_ref().map(|s| s.of(r));
            exchange(cx, block, Blocks::equal(&recv, remote)).await
        }
        Call::Alltoallv { send, recv } | Call::Alltoallw { send, recv } => {
            let block = |r: u32| send.as_ref().map(|s| s[r as usize].clone());
            exchange(cx, block, Blocks::Each(recv)).await
        }
        Call::Reduce {
            send,
            recv,
            op,
            root,
        } => reduce(cx, &here, send, recv, &op, root).await,
        Call::Allreduce { send, recv, op } => {
            reduce_to_leader(cx, &here, send, &op, &recv).await?;
            bcast_binomial::bcast(&here, &recv, LEADER).await
        }
        Call::ReduceScatter {
            send,
            recv,
            counts,
            op,
        } => reduce_scatter(cx, &here, send, recv, &counts, &op).await,
        Call::ReduceScatterBlock { send, recv, op } => {
            let counts = vec![recv.count(); here.size() as usize];
            reduce_scatter(cx, &here, send, recv, &counts, &op).await
        }
        // The table has no module for these: see `SERVES_NOT`.
        Call::Scan { .. }
        | Call::Exscan { .. }
        | Call::NeighborAllgather { .. }
        | Call::NeighborAllgatherv { .. }
        | Call::NeighborAlltoall { .. }
        | Call::NeighborAlltoallv { .. }
        | Call::NeighborAlltoallw { .. } => Ok(()),
    }
}

/// A barrier inside each group, a message exchange of the leaders, then a broadcast inside each group.
async fn barrier(cx: &Invocation, here: &Invocation) -> Result<(), Error> {
    barrier_dissemination::barrier(here).await?;
    let nothing = algo::bytes(0)?.all();
    if cx.rank() == LEADER {
        let send = nothing.as_send();
        cx.sendrecv(&send, LEADER, &nothing, LEADER).await?;
    }
    bcast_binomial::bcast(here, &nothing, LEADER).await
}

/// The root sends to the leader of the other group, which broadcasts to its group.
async fn bcast(cx: &Invocation, here: &Invocation, buf: &RecvBuf, root: u32) -> Result<(), Error> {
    match root {
        ROOT => cx.send(&buf.as_send(), LEADER).await,
        PROC_NULL => Ok(()),
        root => {
            if cx.rank() == LEADER {
                cx.recv(buf, root).await?;
            }
            bcast_binomial::bcast(here, buf, LEADER).await
        }
    }
}

/// Gather: every member of the other group sends its block to the root.
async fn to_root(
    cx: &Invocation,
    send: Option<SendBuf>,
    recv: Option<Blocks<RecvBuf>>,
    root: u32,
) -> Result<(), Error> {
    match (root, send, recv) {
        (ROOT, _, Some(recv)) => {
            let incoming = (0..recv.size()).map(|r| cx.irecv(&recv.of(r), r));
            cx.all(incoming.collect()).await
        }
        (ROOT | PROC_NULL, ..) | (_, None, _) => Ok(()),
        (root, Some(send), _) => cx.send(&send, root).await,
    }
}

/// Scatter: the root sends a block to every member of the other group.
async fn from_root(
    cx: &Invocation,
    send: Option<Blocks<SendBuf>>,
    recv: Option<RecvBuf>,
    root: u32,
) -> Result<(), Error> {
    match (root, send, recv) {
        (ROOT, Some(send), _) => {
            let outgoing = (0..send.size()).map(|r| cx.isend(&send.of(r), r));
            cx.all(outgoing.collect()).await
        }
        (ROOT | PROC_NULL, ..) | (_, _, None) => Ok(()),
        (root, _, Some(recv)) => cx.recv(&recv, root).await,
    }
}

/// Every member sends a block to every member of the other group.
async fn exchange(
    cx: &Invocation,
    send: impl Fn(u32) -> Option<SendBuf>,
    recv: Blocks<RecvBuf>,
) -> Result<(), Error> {
    let remote = cx.comm().peers().size();
    let mut pending: Vec<_> = (0..remote).map(|r| cx.irecv(&recv.of(r), r)).collect();
    // Each rank begins with a different peer, so that the sends do not all start at the same one.
    let turn = (0..remote).map(|step| (cx.rank() + step) % remote);
    pending.extend(turn.filter_map(|r| send(r).map(|block| cx.isend(&block, r))));
    cx.all(pending).await
}

/// The other group reduces to its leader, which sends the result to the root.
async fn reduce(
    cx: &Invocation,
    here: &Invocation,
    send: Option<SendBuf>,
    recv: Option<RecvBuf>,
    op: &Op,
    root: u32,
) -> Result<(), Error> {
    match (root, send, recv) {
        (ROOT, _, Some(recv)) => cx.recv(&recv, LEADER).await,
        (ROOT | PROC_NULL, ..) | (_, None, _) => Ok(()),
        (root, Some(send), _) => match reduce_inside(here, &send, op).await? {
            Some(result) => cx.send(&result, root).await,
            None => Ok(()),
        },
    }
}

/// Reduces inside the group; returns the result on the leader.
async fn reduce_inside(
    here: &Invocation,
    send: &SendBuf,
    op: &Op,
) -> Result<Option<SendBuf>, Error> {
    if here.rank() != LEADER {
        reduce_binomial::reduce(here, Some(send), None, op, LEADER).await?;
        return Ok(None);
    }
    let result = algo::elements(send.count(), send.datatype())?.all();
    reduce_binomial::reduce(here, Some(send), Some(&result), op, LEADER).await?;
    Ok(Some(result.as_send()))
}

/// Both groups reduce, and each leader receives the other group's result.
async fn reduce_to_leader(
    cx: &Invocation,
    here: &Invocation,
    send: Option<SendBuf>,
    op: &Op,
    recv: &RecvBuf,
) -> Result<(), Error> {
    // `send` is always `Some`: MPI_IN_PLACE is invalid on intercommunicators, and the caller has checked that.
    let Some(send) = send else { return Ok(()) };
    match reduce_inside(here, &send, op).await? {
        Some(result) => cx.sendrecv(&result, LEADER, recv, LEADER).await,
        None => Ok(()),
    }
}

/// Both groups reduce, and each scatters the other group's result.
async fn reduce_scatter(
    cx: &Invocation,
    here: &Invocation,
    send: Option<SendBuf>,
    recv: RecvBuf,
    counts: &[i64],
    op: &Op,
) -> Result<(), Error> {
    let total = counts.iter().sum();
    let whole = match cx.rank() {
        LEADER => algo::elements(total, recv.datatype())?.all(),
        _ => recv.clone(),
    };
    reduce_to_leader(cx, here, send, op, &whole).await?;
    let blocks = (cx.rank() == LEADER)
        .then(|| Blocks::Each(algo::scattered::cut(&whole.as_send(), counts).into()));
    scatter_linear::scatter(here, blocks.as_ref(), Some(&recv), LEADER).await
}
