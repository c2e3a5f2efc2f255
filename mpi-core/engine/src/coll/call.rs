//! The collective operations as values.
//!
//! Buffers follow the standard's significance rules: an argument that is significant only at the root is an `Option` that is `Some` at the root.
//! `send: None` where a send buffer is expected means `MPI_IN_PLACE`.
//! The `v` and `w` variants carry one buffer for each rank, so displacements and datatypes are resolved before an algorithm sees them.

use crate::datatype::{RecvBuf, SendBuf};
use crate::op::Op;
use crate::topo::Neighbours;
use std::fmt;
use std::rc::Rc;

/// One collective operation with its arguments. Cheap to clone.
#[derive(Clone)]
pub enum Call {
    Barrier,
    /// The root reads `buf`; every other member writes it.
    Bcast {
        buf: RecvBuf,
        root: u32,
    },
    /// `recv` has `recv.count` elements for each rank, consecutively.
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
    /// `recv: None` is `MPI_IN_PLACE` at the root.
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
    /// `recv` is `Some` at the root only; `send: None` there is `MPI_IN_PLACE`.
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
    /// Rank r receives `counts[r]` elements in `recv`. With MPI_IN_PLACE `recv` points to the whole input.
    ReduceScatter {
        send: Option<SendBuf>,
        recv: RecvBuf,
        counts: Rc<[i64]>,
        op: Op,
    },
    /// Every rank receives `recv.count` elements. With MPI_IN_PLACE `recv` points to the whole input of `size * recv.count` elements.
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
    /// `recv` has `recv.count` elements for each neighbour, consecutively; neighbourhood collectives have no `MPI_IN_PLACE`.
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
    /// `send` and `recv` have a block of their count for each neighbour.
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

/// The kind of an operation, without its arguments.
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
    /// All kinds in numeric order; blocking and nonblocking forms are one kind (MPI 5.0, chapters 6 and 8).
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

    /// Returns the lower-case name that parameters and reports use.
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
    /// Returns the kind of the operation, by which components are selected.
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
    /// Returns the bytes of one rank's block, or of all data, that the standard requires to be equal at all members; `None` if it requires no such number.
    ///
    /// At a root it is the size of the block that the root receives from each rank, or sends to it.
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

/// A set of operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallSet(u32);

impl CallSet {
    /// The empty set, from which others are built.
    pub const NONE: CallSet = CallSet(0);
    /// Every operation, for the last component of a chain and for components that intercept all calls.
    pub const ALL: CallSet = CallSet((1 << CallId::ALL.len()) - 1);

    /// Returns the set with one more operation.
    pub const fn with(self, call: CallId) -> CallSet {
        CallSet(self.0 | 1 << call as u32)
    }

    /// Returns true if the set contains `call`; `const`, since sets are constants.
    pub const fn contains(self, call: CallId) -> bool {
        self.0 & (1 << call as u32) != 0
    }

    /// Returns the operations in the set, in the order of [`CallId::ALL`].
    pub fn iter(self) -> impl Iterator<Item = CallId> {
        CallId::ALL.into_iter().filter(move |c| self.contains(*c))
    }
}
