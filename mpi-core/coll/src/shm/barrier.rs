//! The gate of a communicator's barriers: one of two kinds.

use super::counter::Counter;
use super::flags::Flags;
use super::members::{Members, Stage};
use mpi_base::node::{Node, ShmOffset};

/// Which gate; the numbers are those that rank 0 tells the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Kind {
    Counter = 1,
    Flags = 2,
}

impl Kind {
    pub fn from_number(number: u64) -> Option<Kind> {
        [Kind::Counter, Kind::Flags]
            .into_iter()
            .find(|kind| *kind as u64 == number)
    }

    /// The bytes that a gate of this kind needs for so many members.
    pub fn len(self, members: u32) -> usize {
        match self {
            Kind::Counter => Counter::LEN,
            Kind::Flags => Flags::len(members),
        }
    }
}

/// A gate in shared memory.
pub enum ShmBarrier {
    Counter(Counter),
    Flags(Flags),
}

impl ShmBarrier {
    /// The gate at `place`, if that is inside the node's memory.
    pub fn at(node: &Node, place: ShmOffset, kind: Kind, members: &Members) -> Option<ShmBarrier> {
        Some(match kind {
            Kind::Counter => ShmBarrier::Counter(Counter::at(node, place, members.count())?),
            Kind::Flags => {
                ShmBarrier::Flags(Flags::at(node, place, members.me(), members.count())?)
            }
        })
    }

    /// Goes as far as possible through barrier `number`; true at the other side, after which the stage is used up.
    #[inline]
    pub fn step(&self, members: &Members, number: u64, stage: &mut Stage) -> bool {
        match self {
            ShmBarrier::Counter(gate) => gate.step(members, number, stage),
            ShmBarrier::Flags(gate) => gate.step(members, number, stage),
        }
    }
}
