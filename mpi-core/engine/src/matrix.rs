//! The communication matrix:
//! messages and bytes from this process to each other process, by kind of communication, for `mpirun --matrix`.
//!
//! Point-to-point messages are counted when they are sent.
//! A collective operation is counted by its definition, not by the messages of its algorithm:
//! a broadcast counts as one message from the root to each other member, even if it uses shared memory.
//! One-sided accesses are counted by the origin; a get counts as a message from the target.
//! A barrier is one message without bytes to each other member. Messages to processes of other jobs are not counted.
//!
//! The counts are written to the [event ring](mpi_base::node::EventRing) when the process finalizes.
//! Without `--matrix` there is no `Matrix`,
//! unless a tool starts a performance variable that reads the counts.

use crate::coll::Call;
use crate::pml::{Envelope, Plane};
use mpi_base::node::{Event, EventKind, EventRing, Node};
use mpi_base::param::{Level, Param};
use mpi_base::proc::ProcId;
use mpi_types::group::Group;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Parameter that `mpirun --matrix` sets.
pub static MATRIX: Param<bool> = Param::new(
    "mpi",
    "base",
    "matrix",
    "false",
    Level::USER,
    "Whether each rank counts messages and bytes to each other rank; set by mpirun --matrix",
);

/// The kinds of communication; the discriminant is the kind's code in the event ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u16)]
pub enum Kind {
    P2p = 1,
    Collective = 2,
    OneSided = 3,
}

impl Kind {
    /// All kinds of communication.
    pub const ALL: [Kind; 3] = [Kind::P2p, Kind::Collective, Kind::OneSided];

    /// Returns the name of the kind in files.
    pub fn name(self) -> &'static str {
        match self {
            Kind::P2p => "p2p",
            Kind::Collective => "collective",
            Kind::OneSided => "one-sided",
        }
    }
}

/// A number of messages, and of the bytes in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    pub messages: u64,
    pub bytes: u64,
}

/// The counts of one process.
pub struct Matrix {
    /// The event ring to which the counts are written; `None` if only tools of this process read them.
    ring: Option<Rc<EventRing>>,
    me: ProcId,
    size: u32,
    /// The amounts by kind, sender and receiver; one of these two processes is this one.
    amounts: RefCell<BTreeMap<(Kind, ProcId, ProcId), Amount>>,
}

/// Returns the capacity in events of a ring for the counts: six events per process (sent and received amounts of each kind),
/// plus 8,192 for other reports.
fn events(size: u32) -> u32 {
    const OTHERS: u32 = 1 << 13;
    size.saturating_mul(6).saturating_add(OTHERS)
}

impl Matrix {
    /// Creates the counts, which are written to the ring of a trace, if given, or to a new ring;
    /// `None` if the node's memory has no space for a ring.
    pub fn new(
        node: &Node,
        (me, size): (ProcId, u32),
        ring: Option<Rc<EventRing>>,
    ) -> Option<Matrix> {
        let own = || node.event_ring(events(size)).map(Rc::new);
        Some(Matrix {
            ring: Some(ring.or_else(own)?),
            me,
            size,
            amounts: RefCell::default(),
        })
    }

    /// Creates counts that only tools of this process will read.
    pub fn for_tools((me, size): (ProcId, u32)) -> Matrix {
        Matrix {
            ring: None,
            me,
            size,
            amounts: RefCell::default(),
        }
    }

    /// Returns the amount of one kind that this process has sent to another process.
    pub fn sent(&self, kind: Kind, to: ProcId) -> Amount {
        let amounts = self.amounts.borrow();
        amounts
            .get(&(kind, self.me, to))
            .copied()
            .unwrap_or_default()
    }

    /// Returns the amount of one kind that this process has sent to all other processes.
    pub fn total(&self, kind: Kind) -> Amount {
        let amounts = self.amounts.borrow();
        let sent = amounts
            .iter()
            .filter(|((of, from, _), _)| (*of, *from) == (kind, self.me));
        sent.fold(Amount::default(), |sum, (_, amount)| Amount {
            messages: sum.messages + amount.messages,
            bytes: sum.bytes + amount.bytes,
        })
    }

    /// Returns the event ring, to which layers above write events of their own.
    pub fn ring(&self) -> Option<&Rc<EventRing>> {
        self.ring.as_ref()
    }

    fn add(&self, kind: Kind, (from, to): (ProcId, ProcId), bytes: i64) {
        if from.max(to) >= self.size {
            return;
        }
        let mut amounts = self.amounts.borrow_mut();
        let amount = amounts.entry((kind, from, to)).or_default();
        amount.messages += 1;
        amount.bytes += bytes.max(0) as u64;
    }

    /// Counts a message of the program.
    pub(crate) fn sends(&self, to: &Envelope, bytes: u64) {
        let is_of = |plane| to.context.plane(plane) == to.context;
        if is_of(Plane::User) || is_of(Plane::Partition) {
            self.add(Kind::P2p, (self.me, to.proc), bytes as i64);
        }
    }

    /// Counts a one-sided access to the memory of a member of a window; `reads` is true for a get.
    pub fn accesses(&self, target: ProcId, reads: bool, bytes: i64) {
        let way = match reads {
            true => (target, self.me),
            false => (self.me, target),
        };
        self.add(Kind::OneSided, way, bytes);
    }

    /// Counts what a collective operation sends from rank `me` (this process) to the other members,
    /// or to the remote group of an intercommunicator.
    pub(crate) fn collective(&self, me: u32, others: &Group, call: &Call) {
        for (rank, bytes) in flows(call, me, others.size()) {
            if let Some(proc) = others.proc(rank).filter(|proc| *proc != self.me) {
                self.add(Kind::Collective, (self.me, proc), bytes);
            }
        }
    }

    /// Writes the counts to the event ring.
    pub fn finish(&self) {
        let Some(ring) = &self.ring else { return };
        for ((kind, from, to), amount) in self.amounts.borrow().iter() {
            ring.write(&Event {
                call: *kind as u16,
                peer: *to as i32,
                comm: u64::from(*from),
                bytes: amount.bytes,
                extra: amount.messages,
                ..Event::new(EventKind::Matrix, ring.now())
            });
        }
    }
}

/// Returns the ranks (of `size`) to which an operation sends data of rank `me`, with the number of bytes; `me` itself may be among them.
fn flows(call: &Call, me: u32, size: u32) -> Vec<(u32, i64)> {
    let to_all = |bytes: i64| (0..size).map(|rank| (rank, bytes)).collect::<Vec<_>>();
    let each = |blocks: &mut dyn Iterator<Item = i64>| (0..size).zip(blocks).collect::<Vec<_>>();
    let neighbours = |destinations: &[Option<u32>], blocks: &mut dyn Iterator<Item = i64>| {
        let pairs = destinations.iter().zip(blocks);
        pairs
            .filter_map(|(to, bytes)| Some(((*to)?, bytes)))
            .collect::<Vec<_>>()
    };
    match call {
        Call::Barrier => to_all(0),
        Call::Bcast { buf, root } if *root == me => to_all(buf.bytes()),
        Call::Bcast { .. } => Vec::new(),
        Call::Gather { send, root, .. }
        | Call::Gatherv { send, root, .. }
        | Call::Reduce { send, root, .. } => {
            let send = send.as_ref().map(|send| (*root, send.bytes()));
            send.into_iter().collect()
        }
        Call::Scatter { send, .. } => send
            .as_ref()
            .map_or(Vec::new(), |send| to_all(send.bytes())),
        Call::Scatterv { send, .. } => match send {
            Some(blocks) => each(&mut blocks.iter().map(|block| block.bytes())),
            None => Vec::new(),
        },
        Call::Allgather { send, recv } | Call::Allreduce { send, recv, .. } => {
            to_all(send.as_ref().map_or(recv.bytes(), |send| send.bytes()))
        }
        Call::Allgatherv { send, recv } => {
            let own = recv.get(me as usize).map_or(0, |block| block.bytes());
            to_all(send.as_ref().map_or(own, |send| send.bytes()))
        }
        Call::Alltoall { send, recv } => {
            to_all(send.as_ref().map_or(recv.bytes(), |send| send.bytes()))
        }
        Call::Alltoallv { send, recv } | Call::Alltoallw { send, recv } => match send {
            Some(blocks) => each(&mut blocks.iter().map(|block| block.bytes())),
            None => each(&mut recv.iter().map(|block| block.bytes())),
        },
        Call::ReduceScatter { recv, counts, .. } => {
            each(&mut counts.iter().map(|count| recv.with_count(*count).bytes()))
        }
        Call::ReduceScatterBlock { recv, .. } => to_all(recv.bytes()),
        Call::Scan { recv, .. } | Call::Exscan { recv, .. } => {
            (me + 1..size).map(|rank| (rank, recv.bytes())).collect()
        }
        Call::NeighborAllgather {
            neighbours: all,
            send,
            ..
        }
        | Call::NeighborAllgatherv {
            neighbours: all,
            send,
            ..
        }
        | Call::NeighborAlltoall {
            neighbours: all,
            send,
            ..
        } => neighbours(all.destinations(), &mut std::iter::repeat(send.bytes())),
        Call::NeighborAlltoallv {
            neighbours: all,
            send,
            ..
        }
        | Call::NeighborAlltoallw {
            neighbours: all,
            send,
            ..
        } => neighbours(
            all.destinations(),
            &mut send.iter().map(|block| block.bytes()),
        ),
    }
}
