//! Blocking calls in brief: buffers that are runs of bytes, of predefined types and operators, on an intracommunicator.
//!
//! Most calls of most programs are like that, and those of few bytes are over before much could be made of them.
//! So they are offered as values for registers to the component that is asked first ([`crate::comm::Collectives::carry_out_fast_call`]);
//! what it takes is told when the communicator is made ([`crate::comm::Collectives::takes_fast_call`]).
//! The answer is the same at all members, as it depends only on what the standard makes equal there:
//! a member whose buffers are not runs makes the same call as a [`super::Call`], and they meet.

use super::{CallId, CallSignature};
use crate::datatype::RecvBytes;
use crate::op::DenseOp;

/// A call. Where there is a block for each rank, `send` or `recv` is all of them.
#[derive(Clone, Copy)]
pub enum FastCall<'a> {
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

impl FastCall<'_> {
    /// Which operation it is: the same as of the [`Call`](super::Call) that it stands for.
    #[inline(always)]
    pub fn id(&self) -> CallId {
        match self {
            FastCall::Barrier => CallId::Barrier,
            FastCall::Bcast { .. } => CallId::Bcast,
            FastCall::Gather { .. } => CallId::Gather,
            FastCall::Scatter { .. } => CallId::Scatter,
            FastCall::Allgather { .. } => CallId::Allgather,
            FastCall::Alltoall { .. } => CallId::Alltoall,
            FastCall::Reduce { .. } => CallId::Reduce,
            FastCall::Allreduce { .. } => CallId::Allreduce,
            FastCall::ReduceScatterBlock { .. } => CallId::ReduceScatterBlock,
            FastCall::Scan { .. } => CallId::Scan,
            FastCall::Exscan { .. } => CallId::Exscan,
        }
    }

    /// The bytes of one rank's block, or of everything, that the standard makes equal at all members.
    #[inline(always)]
    pub fn bytes(&self) -> usize {
        match self {
            FastCall::Barrier => 0,
            FastCall::Bcast { data, .. } => data.len(),
            FastCall::Scatter { recv, .. } | FastCall::ReduceScatterBlock { recv, .. } => {
                recv.len()
            }
            FastCall::Alltoall { block, .. } => *block,
            FastCall::Gather { send, .. }
            | FastCall::Allgather { send, .. }
            | FastCall::Reduce { send, .. }
            | FastCall::Allreduce { send, .. }
            | FastCall::Scan { send, .. }
            | FastCall::Exscan { send, .. } => send.len(),
        }
    }

    /// What the state page tells of it, the same as of the [`super::Call`] that it stands for.
    #[inline(always)]
    pub fn said(&self) -> CallSignature {
        let (root, op) = match self {
            FastCall::Barrier | FastCall::Allgather { .. } | FastCall::Alltoall { .. } => {
                (None, None)
            }
            FastCall::Bcast { root, .. }
            | FastCall::Gather { root, .. }
            | FastCall::Scatter { root, .. } => (Some(*root), None),
            FastCall::Reduce { op, root, .. } => (Some(*root), Some(op)),
            FastCall::Allreduce { op, .. }
            | FastCall::ReduceScatterBlock { op, .. }
            | FastCall::Scan { op, .. }
            | FastCall::Exscan { op, .. } => (None, Some(op)),
        };
        let bytes = match self {
            FastCall::Barrier => None,
            _ => Some(self.bytes() as u64),
        };
        CallSignature::brief(self.id(), root, op.map(DenseOp::operator), bytes)
    }
}
