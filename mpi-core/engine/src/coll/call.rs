//! The collective operations as values.
//!
//! Buffers follow the standard's significance rules: an argument that is significant only on the root is an `Option`, which is `Some` on the root.
//! `send: None` where a send buffer is expected means `MPI_IN_PLACE`.
//! The `v` and `w` variants have one buffer per rank, so algorithms need no displacements and datatype arrays.

use crate::datatype::{RecvBuf, SendBuf};
use crate::op::Op;
use crate::topo::Neighbours;
use std::fmt;
use std::rc::Rc;

/// One collective operation with its arguments. Cheap to clone.
#[derive(Clone)]
pub enum Call {
    Barrier,
    /// The root sends the data in `buf`; every other member receives them there.
    Bcast {
        buf: RecvBuf,
        root: u32,
    },
    /// `recv` denotes rank 0's block; the other ranks' blocks of `recv.count` elements follow it.
    Gather {
        send: Option<SendBuf>,
        recv: Option<RecvBuf>,
        root: u32,
    },
    Gatherv {
        send: Option<SendBuf>,
        recv: Option<Rc<[RecvBuf]>>,
        root: u32,
    },
    /// `recv: None` is `MPI_IN_PLACE` on the root.
    Scatter {
        send: Option<SendBuf>,
        recv: Option<RecvBuf>,
        root: u32,
    },
    Scatterv {
        send: Option<Rc<[SendBuf]>>,
        recv: Option<RecvBuf>,
        root: u32,
    },
    Allgather {
        send: Option<SendBuf>,
        recv: RecvBuf,
    },
    Allgatherv {
        send: Option<SendBuf>,
        recv: Rc<[RecvBuf]>,
    },
    Alltoall {
        send: Option<SendBuf>,
        recv: RecvBuf,
    },
    Alltoallv {
        send: Option<Rc<[SendBuf]>>,
        recv: Rc<[RecvBuf]>,
    },
    Alltoallw {
        send: Option<Rc<[SendBuf]>>,
        recv: Rc<[RecvBuf]>,
    },
    /// `recv` is `Some` on the root only; `send: None` is `MPI_IN_PLACE` on the root.
    Reduce {
        send: Option<SendBuf>,
        recv: Option<RecvBuf>,
        op: Op,
        root: u32,
    },
    Allreduce {
        send: Option<SendBuf>,
        recv: RecvBuf,
        op: Op,
    },
    /// Rank r receives `counts[r]` elements in `recv`.
    /// With MPI_IN_PLACE `recv` is the start of the input for all ranks.
    ReduceScatter {
        send: Option<SendBuf>,
        recv: RecvBuf,
        counts: Rc<[i64]>,
        op: Op,
    },
    /// Every rank receives `recv.count` elements.
    /// With MPI_IN_PLACE `recv` is the start of the input of `size * recv.count` elements.
    ReduceScatterBlock {
        send: Option<SendBuf>,
        recv: RecvBuf,
        op: Op,
    },
    Scan {
        send: Option<SendBuf>,
        recv: RecvBuf,
        op: Op,
    },
    Exscan {
        send: Option<SendBuf>,
        recv: RecvBuf,
        op: Op,
    },
    /// `recv` denotes the first neighbour's block, which the others follow; neighbourhood collectives have no `MPI_IN_PLACE`.
    NeighborAllgather {
        neighbours: Rc<Neighbours>,
        send: SendBuf,
        recv: RecvBuf,
    },
    NeighborAllgatherv {
        neighbours: Rc<Neighbours>,
        send: SendBuf,
        recv: Rc<[RecvBuf]>,
    },
    /// `send` and `recv` denote the first neighbour's block, which the others follow.
    NeighborAlltoall {
        neighbours: Rc<Neighbours>,
        send: SendBuf,
        recv: RecvBuf,
    },
    NeighborAlltoallv {
        neighbours: Rc<Neighbours>,
        send: Rc<[SendBuf]>,
        recv: Rc<[RecvBuf]>,
    },
    NeighborAlltoallw {
        neighbours: Rc<Neighbours>,
        send: Rc<[SendBuf]>,
        recv: Rc<[RecvBuf]>,
    },
}

/// A collective operation without its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum CallId {
    Barrier,
    Bcast,
    Gather,
    Gatherv,
    Scatter,
    Scatterv,
    Allgather,
    Allgatherv,
    Alltoall,
    Alltoallv,
    Alltoallw,
    Reduce,
    Allreduce,
    ReduceScatter,
    ReduceScatterBlock,
    Scan,
    Exscan,
    NeighborAllgather,
    NeighborAllgatherv,
    NeighborAlltoall,
    NeighborAlltoallv,
    NeighborAlltoallw,
}

impl CallId {
    /// All collectives in numeric order; blocking and nonblocking forms are not distinguished (MPI 5.0, chapters 6 and 8).
    pub const ALL: [CallId; 22] = [
        CallId::Barrier,
        CallId::Bcast,
        CallId::Gather,
        CallId::Gatherv,
        CallId::Scatter,
        CallId::Scatterv,
        CallId::Allgather,
        CallId::Allgatherv,
        CallId::Alltoall,
        CallId::Alltoallv,
        CallId::Alltoallw,
        CallId::Reduce,
        CallId::Allreduce,
        CallId::ReduceScatter,
        CallId::ReduceScatterBlock,
        CallId::Scan,
        CallId::Exscan,
        CallId::NeighborAllgather,
        CallId::NeighborAllgatherv,
        CallId::NeighborAlltoall,
        CallId::NeighborAlltoallv,
        CallId::NeighborAlltoallw,
    ];

    /// Returns the lower-case name of the collective in parameters and reports.
    pub fn name(self) -> &'static str {
        match self {
            CallId::Barrier => "barrier",
            CallId::Bcast => "bcast",
            CallId::Gather => "gather",
            CallId::Gatherv => "gatherv",
            CallId::Scatter => "scatter",
            CallId::Scatterv => "scatterv",
            CallId::Allgather => "allgather",
            CallId::Allgatherv => "allgatherv",
            CallId::Alltoall => "alltoall",
            CallId::Alltoallv => "alltoallv",
            CallId::Alltoallw => "alltoallw",
            CallId::Reduce => "reduce",
            CallId::Allreduce => "allreduce",
            CallId::ReduceScatter => "reduce_scatter",
            CallId::ReduceScatterBlock => "reduce_scatter_block",
            CallId::Scan => "scan",
            CallId::Exscan => "exscan",
            CallId::NeighborAllgather => "neighbor_allgather",
            CallId::NeighborAllgatherv => "neighbor_allgatherv",
            CallId::NeighborAlltoall => "neighbor_alltoall",
            CallId::NeighborAlltoallv => "neighbor_alltoallv",
            CallId::NeighborAlltoallw => "neighbor_alltoallw",
        }
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Call {
    /// Returns the collective, by which components are selected.
    pub fn id(&self) -> CallId {
        match self {
            Call::Barrier => CallId::Barrier,
            Call::Bcast { .. } => CallId::Bcast,
            Call::Gather { .. } => CallId::Gather,
            Call::Gatherv { .. } => CallId::Gatherv,
            Call::Scatter { .. } => CallId::Scatter,
            Call::Scatterv { .. } => CallId::Scatterv,
            Call::Allgather { .. } => CallId::Allgather,
            Call::Allgatherv { .. } => CallId::Allgatherv,
            Call::Alltoall { .. } => CallId::Alltoall,
            Call::Alltoallv { .. } => CallId::Alltoallv,
            Call::Alltoallw { .. } => CallId::Alltoallw,
            Call::Reduce { .. } => CallId::Reduce,
            Call::Allreduce { .. } => CallId::Allreduce,
            Call::ReduceScatter { .. } => CallId::ReduceScatter,
            Call::ReduceScatterBlock { .. } => CallId::ReduceScatterBlock,
            Call::Scan { .. } => CallId::Scan,
            Call::Exscan { .. } => CallId::Exscan,
            Call::NeighborAllgather { .. } => CallId::NeighborAllgather,
            Call::NeighborAllgatherv { .. } => CallId::NeighborAllgatherv,
            Call::NeighborAlltoall { .. } => CallId::NeighborAlltoall,
            Call::NeighborAlltoallv { .. } => CallId::NeighborAlltoallv,
            Call::NeighborAlltoallw { .. } => CallId::NeighborAlltoallw,
        }
    }
}

impl Call {
    /// Returns the number of bytes that the standard requires to be equal on all members:
    /// of one rank's block, or of all data. Returns `None` if no number must be equal.
    ///
    /// On a root it is the length of the block that the root receives from each rank, or sends to each.
    pub fn agreed_bytes(&self) -> Option<i64> {
        let of_send = |send: &Option<SendBuf>| send.as_ref().map(SendBuf::bytes);
        let of_recv = |recv: &Option<RecvBuf>| recv.as_ref().map(RecvBuf::bytes);
        match self {
            Call::Bcast { buf, .. } => Some(buf.bytes()),
            Call::Gather { send, recv, .. } => of_recv(recv).or(of_send(send)),
            Call::Scatter { send, recv, .. } | Call::Reduce { send, recv, .. } => {
                of_send(send).or(of_recv(recv))
            }
            Call::Allgather { recv, .. }
            | Call::Alltoall { recv, .. }
            | Call::Allreduce { recv, .. }
            | Call::Scan { recv, .. }
            | Call::Exscan { recv, .. }
            | Call::ReduceScatterBlock { recv, .. } => Some(recv.bytes()),
            Call::Allgatherv { recv, .. } => Some(recv.iter().map(RecvBuf::bytes).sum()),
            Call::ReduceScatter { recv, counts, .. } => {
                Some(recv.datatype().bytes(counts.iter().sum()))
            }
            Call::Barrier
            | Call::Gatherv { .. }
            | Call::Scatterv { .. }
            | Call::Alltoallv { .. }
            | Call::Alltoallw { .. }
            | Call::NeighborAllgather { .. }
            | Call::NeighborAllgatherv { .. }
            | Call::NeighborAlltoall { .. }
            | Call::NeighborAlltoallv { .. }
            | Call::NeighborAlltoallw { .. } => None,
        }
    }
}

/// A set of collectives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallSet(u32);

impl CallSet {
    /// The empty set, to which [`CallSet::with`] adds collectives.
    pub const NONE: CallSet = CallSet(0);
    /// All collectives: for the last component of a chain, and for components that intercept all calls.
    pub const ALL: CallSet = CallSet((1 << CallId::ALL.len()) - 1);

    /// Returns the set with `call` added.
    pub const fn with(self, call: CallId) -> CallSet {
        CallSet(self.0 | 1 << call as u32)
    }

    /// Returns true if the set contains `call`.
    pub const fn contains(self, call: CallId) -> bool {
        self.0 & (1 << call as u32) != 0
    }

    /// Returns the collectives in the set, in the order of [`CallId::ALL`].
    pub fn iter(self) -> impl Iterator<Item = CallId> {
        CallId::ALL.into_iter().filter(move |c| self.contains(*c))
    }
}
