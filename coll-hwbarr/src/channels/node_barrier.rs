//! The barrier among the ranks of a node, in shared memory; their leader enters the wire for them.
//!
//! # The protocol
//!
//! Each rank counts its arrivals in its own slot. The leader enters the wire when all ranks of its node have arrived as often as itself.
//! After the release by the wire it stores the number of barriers in its own slot, where the others read it.
//! An arrival wakes the leader, and a release wakes the members on this host, which may sleep.
//!
//! # Writers
//!
//! `arrived` of a slot is written by its rank, `released` by its rank if that is a leader; every rank of the node reads both.
#![allow(unsafe_code)]

use crate::port::Gate;
use mpi_base::atomic::{AtomicU64, Ordering};
use mpi_core::plugin::guest::{Comm, SharedMemory};
use std::task::Poll;

/// One rank's counters; two cache lines, because the prefetcher fetches lines in pairs.
#[repr(C, align(128))]
struct Place {
    arrived: AtomicU64,
    released: AtomicU64,
}

/// The slots of a communicator's ranks on this host.
#[derive(Clone, Copy)]
pub struct Desk(&'static [Place]);

impl Desk {
    /// Allocates the slots; every rank of the host calls.
    pub fn new(comm: &Comm) -> Result<Desk, String> {
        let places = comm.size() as usize;
        let SharedMemory { at, .. } =
            comm.shared_memory(places * size_of::<Place>(), align_of::<Place>())?;
        // SAFETY: `shared_memory` returned zeroed memory of this size and alignment, which all ranks use as slots only.
        // It stays mapped until the last rank frees its module, and modules own all borrows of it.
        Ok(Desk(unsafe {
            std::slice::from_raw_parts(at.as_ptr().cast(), places)
        }))
    }

    fn place(&self, rank: u32) -> Option<&'static Place> {
        self.0.get(rank as usize)
    }

    /// Returns the number of arrivals of a rank.
    fn arrived(&self, rank: u32) -> u64 {
        // SYNC POINT meeting.arrived: what the rank did before it arrived is visible to the released ranks.
        self.place(rank)
            .map_or(0, |place| place.arrived.load(Ordering::Acquire))
    }
}

/// A rank's end of the barrier.
pub struct NodeBarrier {
    comm: Comm,
    /// `None` if this rank is alone at its node.
    desk: Option<Desk>,
    leader: u32,
    /// The ranks of this node.
    mates: Vec<u32>,
    /// The other members on this host.
    neighbours: Vec<u32>,
    /// The leader's wire; `None` at other ranks.
    wire: Option<Box<dyn Gate>>,
    /// Number of this rank's entries; `on_wire` is the number of its node's entries to the wire.
    entered: u64,
    on_wire: u64,
    released: u64,
}

impl NodeBarrier {
    /// `mates` are the ranks of this node. Its leader passes `wire`, and every rank passes `desk` if the node has several ranks.
    pub fn new(
        comm: &Comm,
        mates: Vec<u32>,
        leader: u32,
        desk: Option<Desk>,
        wire: Option<Box<dyn Gate>>,
    ) -> NodeBarrier {
        let mut neighbours = comm.node_ranks();
        neighbours.retain(|rank| *rank != comm.rank());
        NodeBarrier {
            comm: comm.clone(),
            desk,
            leader,
            mates,
            neighbours,
            wire,
            entered: 0,
            on_wire: 0,
            released: 0,
        }
    }

    /// Returns the ranks among `mates`, the ranks of one node, that have arrived less often than another of them.
    pub fn late(desk: Desk, mates: &[u32]) -> Vec<u32> {
        let most = mates.iter().map(|rank| desk.arrived(*rank)).max();
        let late = mates
            .iter()
            .filter(|rank| Some(desk.arrived(**rank)) < most);
        late.copied().collect()
    }

    /// Returns true if all ranks of this node have arrived as often as this rank.
    fn all_here(&self) -> bool {
        self.desk.is_none_or(|desk| {
            let mut mates = self.mates.iter();
            mates.all(|rank| desk.arrived(*rank) >= self.entered)
        })
    }

    fn pass_wire(&mut self) -> Result<(), String> {
        if self.released == self.entered {
            return Ok(());
        }
        let here = self.on_wire == self.entered || self.all_here();
        let Some(wire) = &mut self.wire else {
            return Ok(());
        };
        if !here {
            return Ok(());
        }
        if self.on_wire < self.entered {
            // Counts as entered even if the port fails: the level may have reached the wire.
            self.on_wire = self.entered;
            wire.enter()?;
        }
        if wire.poll()?.is_ready() {
            self.released = self.entered;
            if let Some(place) = self.desk.and_then(|desk| desk.place(self.comm.rank())) {
                // SYNC POINT meeting.released: a rank that reads it sees what all ranks did before they arrived.
                place.released.store(self.released, Ordering::Release);
            }
            self.neighbours
                .iter()
                .for_each(|rank| self.comm.ring(*rank));
        }
        Ok(())
    }
}

impl Gate for NodeBarrier {
    fn enter(&mut self) -> Result<(), String> {
        self.entered += 1;
        if let Some(desk) = self.desk {
            if let Some(place) = desk.place(self.comm.rank()) {
                // SYNC POINT meeting.arrived
                place.arrived.store(self.entered, Ordering::Release);
            }
            if self.leader != self.comm.rank() {
                self.comm.ring(self.leader);
            }
        }
        self.pass_wire()
    }

    fn poll(&mut self) -> Result<Poll<()>, String> {
        if self.wire.is_some() {
            self.pass_wire()?;
        } else if let Some(place) = self.desk.and_then(|desk| desk.place(self.leader)) {
            // SYNC POINT meeting.released
            self.released = place.released.load(Ordering::Acquire);
        }
        Ok(if self.released >= self.entered {
            Poll::Ready(())
        } else {
            Poll::Pending
        })
    }

    fn into_wire(self: Box<Self>) -> Option<Box<dyn Gate>> {
        self.wire
    }
}
