//! The shared-memory barrier of a communicator, by one of two algorithms.

use super::counter::Counter;
use super::flags::Flags;
use super::members::{Members, Stage};
use mpi_base::node::{Node, ShmOffset};
use mpi_base::occupancy::Occupancy;

/// The barrier's algorithm; the discriminants are the values in rank 0's config blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Kind {
    Counter = 1,
    Flags = 2,
}

impl Kind {
    /// Returns the faster algorithm: dissemination, or for oversubscribed ranks the central counter, which causes the fewest context switches.
    pub fn fitting(occupancy: Occupancy) -> Kind {
        match occupancy {
            Occupancy::Dedicated => Kind::Flags,
            Occupancy::Oversubscribed => Kind::Counter,
        }
    }

    pub fn from_number(number: u64) -> Option<Kind> {
        [Kind::Counter, Kind::Flags]
            .into_iter()
            .find(|kind| *kind as u64 == number)
    }

    /// Returns the number of bytes of shared memory that this algorithm needs for `members` members.
    pub fn len(self, members: u32) -> usize {
        match self {
            Kind::Counter => Counter::LEN,
            Kind::Flags => Flags::len(members),
        }
    }
}

/// A barrier in shared memory.
pub enum ShmBarrier {
    Counter(Counter),
    Flags(Flags),
}

impl ShmBarrier {
    /// Returns the barrier at `offset`, or `None` if it is not inside the node's memory.
    pub fn at(node: &Node, offset: ShmOffset, kind: Kind, members: &Members) -> Option<ShmBarrier> {
        Some(match kind {
            Kind::Counter => ShmBarrier::Counter(Counter::at(node, offset, members.count())?),
            Kind::Flags => {
                ShmBarrier::Flags(Flags::at(node, offset, members.me(), members.count())?)
            }
        })
    }

    /// Prefetches, for writing, what this rank writes in barrier `number`.
    /// The counter of oversubscribed ranks is written by all, so its line is not prefetched.
    pub fn prefetch_next(&self, number: u64) {
        match self {
            ShmBarrier::Counter(_) => {}
            ShmBarrier::Flags(barrier) => barrier.prefetch_next(number),
        }
    }

    /// Advances barrier `number` as far as possible. Returns true if this rank is released.
    /// Then the barrier is complete, and the caller must not pass `stage` again.
    #[inline]
    pub fn step(&self, members: &Members, number: u64, stage: &mut Stage) -> bool {
        match self {
            ShmBarrier::Counter(barrier) => barrier.step(members, number, stage),
            ShmBarrier::Flags(barrier) => barrier.step(members, number, stage),
        }
    }
}
