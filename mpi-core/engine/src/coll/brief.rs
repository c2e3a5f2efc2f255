//! Blocking calls in brief: buffers that are runs of bytes, of predefined types and operators, on an intracommunicator.
//!
//! Most calls of most programs are like that, and those of few bytes are over before much could be made of them.
//! So they are offered as values for registers to the component that is asked first ([`super::Collectives::carry_out_brief`]);
//! what it takes is told when the communicator is made ([`super::Collectives::takes_brief`]).
//! The answer is the same at all members, as it depends only on what the standard makes equal there:
//! a member whose buffers are not runs makes the same call as a [`super::Call`], and they meet.

use super::{CallId, Said};
use crate::datatype::RecvBytes;
use crate::op::DenseOp;

/// A call. Where there is a block for each rank, `send` or `recv` is all of them.
#[derive(Clone, Copy)]
pub enum Brief<'a> {
    Barrier,
    Bcast {
        data: RecvBytes,
        root: u32,
    },
    Gather {
        send: &'a [u8],
        recv: Option<RecvBytes>,
        root: u32,
    },
    Scatter {
        send: Option<&'a [u8]>,
        recv: RecvBytes,
        root: u32,
    },
    Allgather {
        send: &'a [u8],
        recv: RecvBytes,
    },
    /// With the bytes of a block.
    Alltoall {
        send: &'a [u8],
        recv: RecvBytes,
        block: usize,
    },
    Reduce {
        send: &'a [u8],
        recv: Option<RecvBytes>,
        op: DenseOp,
        root: u32,
    },
    Allreduce {
        send: &'a [u8],
        recv: RecvBytes,
        op: DenseOp,
    },
    ReduceScatterBlock {
        send: &'a [u8],
        recv: RecvBytes,
        op: DenseOp,
    },
    Scan {
        send: &'a [u8],
        recv: RecvBytes,
        op: DenseOp,
    },
    Exscan {
        send: &'a [u8],
        recv: RecvBytes,
        op: DenseOp,
    },
}

impl Brief<'_> {
    /// Which operation it is: the same as of the [`Call`](super::Call) that it stands for.
    #[inline(always)]
    pub fn id(&self) -> CallId {
        match self {
            Brief::Barrier => CallId::Barrier,
            Brief::Bcast { .. } => CallId::Bcast,
            Brief::Gather { .. } => CallId::Gather,
            Brief::Scatter { .. } => CallId::Scatter,
            Brief::Allgather { .. } => CallId::Allgather,
            Brief::Alltoall { .. } => CallId::Alltoall,
            Brief::Reduce { .. } => CallId::Reduce,
            Brief::Allreduce { .. } => CallId::Allreduce,
            Brief::ReduceScatterBlock { .. } => CallId::ReduceScatterBlock,
            Brief::Scan { .. } => CallId::Scan,
            Brief::Exscan { .. } => CallId::Exscan,
        }
    }

    /// The bytes of one rank's block, or of everything, that the standard makes equal at all members.
    #[inline(always)]
    pub fn bytes(&self) -> usize {
        match self {
            Brief::Barrier => 0,
            Brief::Bcast { data, .. } => data.len(),
            Brief::Scatter { recv, .. } | Brief::ReduceScatterBlock { recv, .. } => recv.len(),
            Brief::Alltoall { block, .. } => *block,
            Brief::Gather { send, .. }
            | Brief::Allgather { send, .. }
            | Brief::Reduce { send, .. }
            | Brief::Allreduce { send, .. }
            | Brief::Scan { send, .. }
            | Brief::Exscan { send, .. } => send.len(),
        }
    }

    /// What the state page tells of it, the same as of the [`super::Call`] that it stands for.
    #[inline(always)]
    pub fn said(&self) -> Said {
        let (root, op) = match self {
            Brief::Barrier | Brief::Allgather { .. } | Brief::Alltoall { .. } => (None, None),
            Brief::Bcast { root, .. }
            | Brief::Gather { root, .. }
            | Brief::Scatter { root, .. } => (Some(*root), None),
            Brief::Reduce { op, root, .. } => (Some(*root), Some(op)),
            Brief::Allreduce { op, .. }
            | Brief::ReduceScatterBlock { op, .. }
            | Brief::Scan { op, .. }
            | Brief::Exscan { op, .. } => (None, Some(op)),
        };
        let bytes = match self {
            Brief::Barrier => None,
            _ => Some(self.bytes() as u64),
        };
        Said::brief(self.id(), root, op.map(DenseOp::operator), bytes)
    }
}
