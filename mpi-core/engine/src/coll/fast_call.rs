//! Fast calls: collectives on contiguous buffers of predefined types and operators, on an intracommunicator.
//!
//! Most calls of most programs are of this kind. A short one takes less time than the construction
//! of its general representation [`Call`](super::Call).
//! So a fast call is passed without that representation to the first component, by a table of the communicator ([`crate::comm::FastSlot`]).
//! When the communicator is created, the component states which fast calls it accepts ([`crate::comm::Collectives::fast_slot`]).
//! Whether it accepts a call depends only on arguments that the standard makes equal on all members:
//! a member whose buffers are not contiguous makes the same call as a [`super::Call`], and both match.
//!
//! A fast call is blocking, or it starts a request; a component may accept both, only the blocking form, or none.

use super::{CallId, CallSignature};
use crate::datatype::RecvBytes;
use crate::op::DenseOp;

/// A fast call. If there is a block for each rank, `send` or `recv` contains all blocks.
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
    /// All blocks have the length of `send`, and are in `recv` one after another.
    Allgatherv {
        send: &'a [u8],
        recv: RecvBytes,
    },
    /// `block` is the size of a block in bytes.
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
    /// Returns the collective; the corresponding [`Call`](super::Call) returns the same one.
    #[inline(always)]
    pub fn id(&self) -> CallId {
        match self {
            FastCall::Barrier => CallId::Barrier,
            FastCall::Bcast { .. } => CallId::Bcast,
            FastCall::Gather { .. } => CallId::Gather,
            FastCall::Scatter { .. } => CallId::Scatter,
            FastCall::Allgather { .. } => CallId::Allgather,
            FastCall::Allgatherv { .. } => CallId::Allgatherv,
            FastCall::Alltoall { .. } => CallId::Alltoall,
            FastCall::Reduce { .. } => CallId::Reduce,
            FastCall::Allreduce { .. } => CallId::Allreduce,
            FastCall::ReduceScatterBlock { .. } => CallId::ReduceScatterBlock,
            FastCall::Scan { .. } => CallId::Scan,
            FastCall::Exscan { .. } => CallId::Exscan,
        }
    }

    /// Returns the number of bytes that the standard requires to be equal on all members:
    /// of one rank's block, or of all data.
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
            | FastCall::Allgatherv { send, .. }
            | FastCall::Reduce { send, .. }
            | FastCall::Allreduce { send, .. }
            | FastCall::Scan { send, .. }
            | FastCall::Exscan { send, .. } => send.len(),
        }
    }

    /// Returns the call's signature for the state page; the corresponding [`super::Call`] has the same one.
    #[inline(always)]
    pub fn signature(&self) -> CallSignature {
        let (root, op) = match self {
            FastCall::Barrier
            | FastCall::Allgather { .. }
            | FastCall::Allgatherv { .. }
            | FastCall::Alltoall { .. } => (None, None),
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
            // As in the general form, where each rank has a count of its own.
            FastCall::Barrier | FastCall::Allgatherv { .. } => None,
            _ => Some(self.bytes() as u64),
        };
        CallSignature::call(self.id(), root, op.map(DenseOp::operator), bytes)
    }
}
