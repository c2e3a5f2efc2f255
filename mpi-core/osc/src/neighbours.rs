//! What other members on this node access at the same time, for `osc_base_check`.
//!
//! Each member that checks has a table of its accesses that are not complete, in its own arena: only it writes there, and all members on the node read.
//! Cells are reused in turn, so that of more accesses than there are cells the oldest are forgotten.
//!
//! Promise: of two accesses at the same time that conflict at least one finds the other, as long as both are in the tables;
//! and what is found was not complete when the other access began, by a flush, the end of an epoch or a fence.
//! An access of an earlier phase between two fences counts as complete, also before its origin has taken it out of the table.
//!
//! SYNC POINT `neighbours.seen`: a member writes its access down before it looks at the others, each side with a sequentially consistent fence between.
//! A cell's stamp is 0 while the cell is empty or being written; what was read counts if the stamp was the same before and after.
//! Nothing that is read is followed.

#![allow(unsafe_code)]

use super::access::Does;
use mpi_base::atomic::{AtomicU64, Ordering, fence};
use mpi_base::mem::{Held, Shared};
use mpi_base::node::{Node, ShmBlock, ShmOffset};
use std::cell::Cell;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

/// As many accesses of each member are seen by others.
const CELLS: usize = 512;

/// The calls that access, by the number that stands for each.
const CALLS: [&str; 5] = [
    "MPI_Put",
    "MPI_Get",
    "MPI_Accumulate",
    "MPI_Get_accumulate",
    "MPI_Compare_and_swap",
];

#[repr(C, align(64))]
pub(super) struct Slot {
    stamp: AtomicU64,
    /// The target's rank, and the call in the upper half.
    whom: AtomicU64,
    does: AtomicU64,
    from: AtomicU64,
    to: AtomicU64,
    phase: AtomicU64,
}

// SAFETY: atomics only.
unsafe impl Shared for Slot {}

/// An access to bytes of one target; `phase` counts the fences before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Doing {
    pub call: &'static str,
    pub target: u32,
    pub does: Does,
    pub bytes: Range<i64>,
    pub phase: u64,
}

/// An access of another member that conflicts.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Clash {
    pub origin: u32,
    pub call: &'static str,
    pub bytes: Range<i64>,
}

/// What an access does as others see it: two words are alike if the accesses may overlap.
fn word(does: Does) -> u64 {
    const WRITE: u64 = 1;
    const READ: u64 = 2;
    match does {
        Does::Write => WRITE,
        Does::Read => READ,
        Does::Update(kind) => {
            // All members run the same library. Kinds whose words are equal by chance are not told apart.
            let mut hasher = DefaultHasher::new();
            kind.hash(&mut hasher);
            hasher.finish() | 1 << 63
        }
    }
}

fn conflict(a: u64, b: u64) -> bool {
    a != b || a == word(Does::Write)
}

/// A block for a member's table; zeroed, it is empty.
pub(super) fn take(node: &Node) -> Option<ShmBlock> {
    node.alloc_large(CELLS * size_of::<Slot>(), align_of::<Slot>())
}

/// All tables on this node.
pub(super) struct Neighbours {
    mine: Held<[Slot]>,
    _block: ShmBlock,
    others: Vec<(u32, Held<[Slot]>)>,
    next: Cell<usize>,
    stamp: Cell<u64>,
}

impl Neighbours {
    /// `block` is our table, `others` the rank and place of each other table.
    pub fn new(
        node: &Node,
        block: ShmBlock,
        others: impl Iterator<Item = (u32, ShmOffset)>,
    ) -> Option<Neighbours> {
        let table = |place| node.hold_all(place, CELLS);
        Some(Neighbours {
            mine: table(block.place())?,
            _block: block,
            others: others
                .filter_map(|(rank, place)| Some((rank, table(place)?)))
                .collect(),
            next: Cell::new(0),
            stamp: Cell::new(0),
        })
    }

    /// Writes an access down, and looks for one of another member with which it conflicts.
    pub fn begin(&self, doing: &Doing) -> Option<Clash> {
        let at = self.next.get();
        self.next.set((at + 1) % CELLS);
        let slot = &self.mine[at];
        slot.stamp.store(0, Ordering::SeqCst);
        let call = CALLS.iter().position(|name| *name == doing.call);
        let whom = u64::from(doing.target) | (call.unwrap_or(0) as u64) << 32;
        slot.whom.store(whom, Ordering::Relaxed);
        slot.does.store(word(doing.does), Ordering::Relaxed);
        slot.from.store(doing.bytes.start as u64, Ordering::Relaxed);
        slot.to.store(doing.bytes.end as u64, Ordering::Relaxed);
        slot.phase.store(doing.phase, Ordering::Relaxed);
        let stamp = self.stamp.get() + 1;
        self.stamp.set(stamp);
        slot.stamp.store(stamp, Ordering::Release);
        // SYNC POINT neighbours.seen
        fence(Ordering::SeqCst);
        let clash = self.clash(doing);
        if clash.is_some() {
            // The access is refused, so no other access meets it.
            slot.stamp.store(0, Ordering::SeqCst);
        }
        clash
    }

    fn clash(&self, doing: &Doing) -> Option<Clash> {
        let does = word(doing.does);
        let slots = |(rank, table): &(u32, Held<[Slot]>)| {
            let rank = *rank;
            table
                .iter()
                .filter_map(read)
                .find(|seen| {
                    seen.target == doing.target
                        && seen.phase == doing.phase
                        && seen.bytes.start < doing.bytes.end
                        && doing.bytes.start < seen.bytes.end
                        && conflict(seen.does, does)
                })
                .map(|seen| Clash {
                    origin: rank,
                    call: seen.call,
                    bytes: doing.bytes.start.max(seen.bytes.start)
                        ..doing.bytes.end.min(seen.bytes.end),
                })
        };
        self.others.iter().find_map(slots)
    }

    /// Our accesses to one target, or to all, are complete.
    pub fn end(&self, only: Option<u32>) {
        for slot in self.mine.iter() {
            let target = slot.whom.load(Ordering::Relaxed) as u32;
            if slot.stamp.load(Ordering::Relaxed) != 0 && only.is_none_or(|only| only == target) {
                slot.stamp.store(0, Ordering::Release);
            }
        }
        fence(Ordering::SeqCst);
    }
}

/// What a slot of another member says.
struct Seen {
    call: &'static str,
    target: u32,
    does: u64,
    bytes: Range<i64>,
    phase: u64,
}

fn read(slot: &Slot) -> Option<Seen> {
    let stamp = slot.stamp.load(Ordering::Acquire);
    if stamp == 0 {
        return None;
    }
    let whom = slot.whom.load(Ordering::Relaxed);
    let call = usize::try_from(whom >> 32).ok();
    let seen = Seen {
        call: call.and_then(|call| CALLS.get(call)).unwrap_or(&"a call"),
        target: whom as u32,
        does: slot.does.load(Ordering::Relaxed),
        bytes: slot.from.load(Ordering::Relaxed) as i64..slot.to.load(Ordering::Relaxed) as i64,
        phase: slot.phase.load(Ordering::Relaxed),
    };
    fence(Ordering::Acquire);
    (slot.stamp.load(Ordering::Relaxed) == stamp).then_some(seen)
}
