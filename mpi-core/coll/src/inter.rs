//! `inter`: the collectives of intercommunicators (MPI 5.0, section 6.2.3).
//!
//! Each group receives the data of the other group.
//! Each operation consists of intracommunicator algorithms inside a group, and messages between the groups.
//! Messages are exchanged between the two leaders (rank 0 of each group)
//! if one message is enough for a whole group,
//! and between all pairs of members of different groups if every member receives different data.
//! The messages between the groups and those inside each group have the same tag.
//!
//! On ranks that exchange data with the root, `root` is the root's rank in the remote group.
//! It is [`ROOT`] on the root itself,
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

/// Collectives without an intercommunicator version: prefix reductions (sections 6.11.1, 6.11.2) and neighbourhood collectives.
const SERVES_NOT: [CallId; 7] = [
    CallId::Scan,
    CallId::Exscan,
    CallId::NeighborAllgather,
    CallId::NeighborAllgatherv,
    CallId::NeighborAlltoall,
    CallId::NeighborAlltoallv,
    CallId::NeighborAlltoallw,
];

/// The module of all intercommunicators; it has no state.
pub struct Inter;

impl Module for Inter {
    fn serves(&self) -> CallSet {
        let all = CallId::ALL.into_iter();
        all.filter(|c| !SERVES_NOT.contains(c))
            .fold(CallSet::NONE, CallSet::with)
    }

    fn start(&self, invocation: Invocation, call: Call) -> Running {
        Box::pin(carry_out(invocation, call))
    }
}

/// Carries out a call. After a length mismatch both groups continue to the end: see [`length_mismatch`](super::length_mismatch).
async fn carry_out(invocation: Invocation, call: Call) -> Result<(), Error> {
    let invocation = invocation.checked_for_lengths().unwrap_or(invocation);
    let outcome = between(&invocation, call).await;
    invocation.verdict(outcome)
}

async fn between(invocation: &Invocation, call: Call) -> Result<(), Error> {
    let here = invocation.inside(call.id().name())?;
    let remote = invocation.comm().peers().size();
    match call {
        Call::Barrier => barrier(invocation, &here).await,
        Call::Bcast { buf, root } => bcast(invocation, &here, &buf, root).await,
        Call::Gather { send, recv, root } => {
            let recv = recv.map(|r| Blocks::equal(&r, remote));
            to_root(invocation, send, recv, root).await
        }
        Call::Gatherv { send, recv, root } => {
            to_root(invocation, send, recv.map(Blocks::Each), root).await
        }
        Call::Scatter { send, recv, root } => {
            let send = send.map(|s| Blocks::equal(&s, remote));
            from_root(invocation, send, recv, root).await
        }
        Call::Scatterv { send, recv, root } => {
            from_root(invocation, send.map(Blocks::Each), recv, root).await
        }
        Call::Allgather { send, recv } => {
            let recv = Blocks::equal(&recv, remote);
            exchange(invocation, |_| send.clone(), recv).await
        }
        Call::Allgatherv { send, recv } => {
            exchange(invocation, |_| send.clone(), Blocks::Each(recv)).await
        }
        Call::Alltoall { send, recv } => {
            let send = send.map(|s| Blocks::equal(&s, remote));
            let block = |r| send.as_ref().map(|s| s.of(r));
            exchange(invocation, block, Blocks::equal(&recv, remote)).await
        }
        Call::Alltoallv { send, recv } | Call::Alltoallw { send, recv } => {
            let block = |r: u32| send.as_ref().map(|s| s[r as usize].clone());
            exchange(invocation, block, Blocks::Each(recv)).await
        }
        Call::Reduce {
            send,
            recv,
            op,
            root,
        } => reduce(invocation, &here, send, recv, &op, root).await,
        Call::Allreduce { send, recv, op } => {
            reduce_to_leader(invocation, &here, send, &op, &recv).await?;
            bcast_binomial::bcast(&here, &recv, LEADER).await
        }
        Call::ReduceScatter {
            send,
            recv,
            counts,
            op,
        } => reduce_scatter(invocation, &here, send, recv, &counts, &op).await,
        Call::ReduceScatterBlock { send, recv, op } => {
            let counts = vec![recv.count(); here.size() as usize];
            reduce_scatter(invocation, &here, send, recv, &counts, &op).await
        }
        // Unreachable: the selection table has no module for the calls of `SERVES_NOT`.
        Call::Scan { .. }
        | Call::Exscan { .. }
        | Call::NeighborAllgather { .. }
        | Call::NeighborAllgatherv { .. }
        | Call::NeighborAlltoall { .. }
        | Call::NeighborAlltoallv { .. }
        | Call::NeighborAlltoallw { .. } => Ok(()),
    }
}

/// Barrier: one inside each group, then a message exchange of the leaders, then a broadcast inside each group.
async fn barrier(invocation: &Invocation, here: &Invocation) -> Result<(), Error> {
    barrier_dissemination::barrier(here).await?;
    let nothing = algo::bytes(0)?.all();
    if invocation.rank() == LEADER {
        let send = nothing.as_send();
        invocation.sendrecv(&send, LEADER, &nothing, LEADER).await?;
    }
    bcast_binomial::bcast(here, &nothing, LEADER).await
}

/// Broadcast: the root sends to the leader of the other group, which broadcasts to its group.
async fn bcast(
    invocation: &Invocation,
    here: &Invocation,
    buf: &RecvBuf,
    root: u32,
) -> Result<(), Error> {
    match root {
        ROOT => invocation.send(&buf.as_send(), LEADER).await,
        PROC_NULL => Ok(()),
        root => {
            if invocation.rank() == LEADER {
                invocation.recv(buf, root).await?;
            }
            bcast_binomial::bcast(here, buf, LEADER).await
        }
    }
}

/// Gather: every member of the other group sends its block to the root.
async fn to_root(
    invocation: &Invocation,
    send: Option<SendBuf>,
    recv: Option<Blocks<RecvBuf>>,
    root: u32,
) -> Result<(), Error> {
    match (root, send, recv) {
        (ROOT, _, Some(recv)) => {
            let incoming = (0..recv.size()).map(|r| invocation.irecv(&recv.of(r), r));
            invocation.all(incoming.collect()).await
        }
        (ROOT | PROC_NULL, ..) | (_, None, _) => Ok(()),
        (root, Some(send), _) => invocation.send(&send, root).await,
    }
}

/// Scatter: the root sends a block to every member of the other group.
async fn from_root(
    invocation: &Invocation,
    send: Option<Blocks<SendBuf>>,
    recv: Option<RecvBuf>,
    root: u32,
) -> Result<(), Error> {
    match (root, send, recv) {
        (ROOT, Some(send), _) => {
            let outgoing = (0..send.size()).map(|r| invocation.isend(&send.of(r), r));
            invocation.all(outgoing.collect()).await
        }
        (ROOT | PROC_NULL, ..) | (_, _, None) => Ok(()),
        (root, _, Some(recv)) => invocation.recv(&recv, root).await,
    }
}

/// All-to-all: every member sends a block to every member of the other group.
async fn exchange(
    invocation: &Invocation,
    send: impl Fn(u32) -> Option<SendBuf>,
    recv: Blocks<RecvBuf>,
) -> Result<(), Error> {
    let remote = invocation.comm().peers().size();
    let mut pending: Vec<_> = (0..remote)
        .map(|r| invocation.irecv(&recv.of(r), r))
        .collect();
    // Each rank begins with a different remote rank, so that not all sends go to the same rank first.
    let turn = (0..remote).map(|step| (invocation.rank() + step) % remote);
    pending.extend(turn.filter_map(|r| send(r).map(|block| invocation.isend(&block, r))));
    invocation.all(pending).await
}

/// Reduction: the other group reduces to its leader, and the leader sends the result to the root.
async fn reduce(
    invocation: &Invocation,
    here: &Invocation,
    send: Option<SendBuf>,
    recv: Option<RecvBuf>,
    op: &Op,
    root: u32,
) -> Result<(), Error> {
    match (root, send, recv) {
        (ROOT, _, Some(recv)) => invocation.recv(&recv, LEADER).await,
        (ROOT | PROC_NULL, ..) | (_, None, _) => Ok(()),
        (root, Some(send), _) => match reduce_inside(here, &send, op).await? {
            Some(result) => invocation.send(&result, root).await,
            None => Ok(()),
        },
    }
}

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

/// Both groups reduce to their leaders, and each leader receives the other group's result.
async fn reduce_to_leader(
    invocation: &Invocation,
    here: &Invocation,
    send: Option<SendBuf>,
    op: &Op,
    recv: &RecvBuf,
) -> Result<(), Error> {
    // `send` is always `Some`: MPI_IN_PLACE is invalid on intercommunicators, and the caller has checked that.
    let Some(send) = send else { return Ok(()) };
    match reduce_inside(here, &send, op).await? {
        Some(result) => invocation.sendrecv(&result, LEADER, recv, LEADER).await,
        None => Ok(()),
    }
}

/// Both groups reduce, and each group scatters the other group's result.
async fn reduce_scatter(
    invocation: &Invocation,
    here: &Invocation,
    send: Option<SendBuf>,
    recv: RecvBuf,
    counts: &[i64],
    op: &Op,
) -> Result<(), Error> {
    let total = counts.iter().sum();
    let whole = match invocation.rank() {
        LEADER => algo::elements(total, recv.datatype())?.all(),
        _ => recv.clone(),
    };
    reduce_to_leader(invocation, here, send, op, &whole).await?;
    let blocks = (invocation.rank() == LEADER)
        .then(|| Blocks::Each(algo::scattered::cut(&whole.as_send(), counts).into()));
    scatter_linear::scatter(here, blocks.as_ref(), Some(&recv), LEADER).await
}
