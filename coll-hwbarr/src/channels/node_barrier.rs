//! The shared-memory barrier among the ranks of a node;
//! their leader drives the wire of the hardware barrier for all of them.
//!
//! # The protocol
//!
//! Each rank counts its arrivals in its own slot. The leader enters the hardware barrier
//! when all ranks of its node have arrived as often as itself.
//! After the hardware's release the leader stores the number of released barriers in its own slot,
//! and the other ranks poll that number.
//! An arrival wakes the leader, and a release wakes the members on this host, which may sleep.
//!
//! # Writers
//!
//! A slot's `arrived` is written only by its rank, and `released` only by the leader in its own slot;
//! all ranks of the node read both.
#![allow(unsafe_code)]

use crate::port::Barrier;
use mpi_base::atomic::{AtomicU64, Ordering};
use mpi_core::plugin::guest::{Comm, SharedMemory};
use std::task::Poll;

/// One rank's counters. A slot has two cache lines, because the prefetcher fetches lines in pairs.
#[repr(C, align(128))]
struct Slot {
    arrived: AtomicU64,
    released: AtomicU64,
}

/// The slots of a communicator's ranks on this host.
#[derive(Clone, Copy)]
pub struct ArrivalSlots(&'static [Slot]);

impl ArrivalSlots {
    /// Allocates the slots; every rank of the host must call this.
    pub fn new(comm: &Comm) -> Result<ArrivalSlots, String> {
        let slots = comm.size() as usize;
        let SharedMemory { at, .. } =
            comm.shared_memory(slots * size_of::<Slot>(), align_of::<Slot>())?;
        // SAFETY: `shared_memory` returned zeroed memory of this size and alignment, which all ranks use only as slots.
        // It stays mapped until the last rank frees its module, and modules own all borrows of it.
        Ok(ArrivalSlots(unsafe {
            std::slice::from_raw_parts(at.as_ptr().cast(), slots)
        }))
    }

    fn slot(&self, rank: u32) -> Option<&'static Slot> {
        self.0.get(rank as usize)
    }

    fn arrived(&self, rank: u32) -> u64 {
        // SYNC POINT node_barrier.arrived: everything that a rank stored before it arrived is
        // visible to the released ranks.
        self.slot(rank)
            .map_or(0, |slot| slot.arrived.load(Ordering::Acquire))
    }
}

/// A rank's handle of the node's barrier.
pub struct NodeBarrier {
    comm: Comm,
    /// `None` if this rank is the only rank of its node.
    arrival_slots: Option<ArrivalSlots>,
    leader: u32,
    /// The ranks of this node (a port of the board), this rank included.
    /// A host has several nodes if each rank has a port of its own.
    node_mates: Vec<u32>,
    /// The other members of the communicator on this host, on any of its nodes.
    /// The leader wakes them at a release.
    neighbours: Vec<u32>,
    /// The wire of the hardware barrier, at the leader; `None` at other ranks.
    wire: Option<Box<dyn Barrier>>,
    /// Number of barriers that this rank has entered.
    /// `on_wire` is the number of barriers that the rank's node has entered on the wire.
    entered: u64,
    on_wire: u64,
    released: u64,
}

impl NodeBarrier {
    /// Creates a rank's handle; `node_mates` are the ranks of its node.
    /// The leader passes `wire`. If the node has several ranks, every rank passes
    /// `arrival_slots`.
    pub fn new(
        comm: &Comm,
        node_mates: Vec<u32>,
        leader: u32,
        arrival_slots: Option<ArrivalSlots>,
        wire: Option<Box<dyn Barrier>>,
    ) -> NodeBarrier {
        let mut neighbours = comm.node_ranks();
        neighbours.retain(|rank| *rank != comm.rank());
        NodeBarrier {
            comm: comm.clone(),
            arrival_slots,
            leader,
            node_mates,
            neighbours,
            wire,
            entered: 0,
            on_wire: 0,
            released: 0,
        }
    }

    /// Returns those of the ranks `node_mates`, which are the ranks of one node,
    /// that have arrived less often than another of these ranks.
    pub fn late(arrival_slots: ArrivalSlots, node_mates: &[u32]) -> Vec<u32> {
        let most = node_mates
            .iter()
            .map(|rank| arrival_slots.arrived(*rank))
            .max();
        let late = node_mates
            .iter()
            .filter(|rank| Some(arrival_slots.arrived(**rank)) < most);
        late.copied().collect()
    }

    /// Returns true if all ranks of this node have arrived as often as this rank.
    fn all_here(&self) -> bool {
        self.arrival_slots.is_none_or(|arrival_slots| {
            let mut node_mates = self.node_mates.iter();
            node_mates.all(|rank| arrival_slots.arrived(*rank) >= self.entered)
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
            // The barrier counts as entered even if the port reports an error:
            // the new level may have reached the wire.
            self.on_wire = self.entered;
            wire.enter()?;
        }
        if wire.poll()?.is_ready() {
            self.released = self.entered;
            if let Some(slot) = self
                .arrival_slots
                .and_then(|arrival_slots| arrival_slots.slot(self.comm.rank()))
            {
                // SYNC POINT node_barrier.released: a rank that reads this store sees what all
                // ranks stored before they arrived.
                slot.released.store(self.released, Ordering::Release);
            }
            self.neighbours
                .iter()
                .for_each(|rank| self.comm.ring(*rank));
        }
        Ok(())
    }
}

impl Barrier for NodeBarrier {
    fn enter(&mut self) -> Result<(), String> {
        self.entered += 1;
        if let Some(arrival_slots) = self.arrival_slots {
            if let Some(slot) = arrival_slots.slot(self.comm.rank()) {
                // SYNC POINT node_barrier.arrived
                slot.arrived.store(self.entered, Ordering::Release);
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
        } else if let Some(slot) = self
            .arrival_slots
            .and_then(|arrival_slots| arrival_slots.slot(self.leader))
        {
            // SYNC POINT node_barrier.released
            self.released = slot.released.load(Ordering::Acquire);
        }
        Ok(if self.released >= self.entered {
            Poll::Ready(())
        } else {
            Poll::Pending
        })
    }

    fn into_wire(self: Box<Self>) -> Option<Box<dyn Barrier>> {
        self.wire
    }
}
