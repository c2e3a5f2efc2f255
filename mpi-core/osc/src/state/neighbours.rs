//! Shared-memory tables of the incomplete accesses of members on this node, for `osc_base_check`.
//!
//! Each member with `osc_base_check` has a table of its incomplete accesses in its own arena.
//! Only this member writes its table. All members on the node read it.
//! Slots are reused in cyclic order, so a full table drops its oldest accesses.
//!
//! Guarantee: of two concurrent accesses that conflict, at least one finds the other while both are
//! in the tables. An access that is found was not complete when the other access began.
//! A flush, the end of an epoch or a fence completes an access. After a fence, earlier accesses
//! count as complete, even before their origin has removed them from the table.
//!
//! SYNC POINT `neighbours.seen`: a member writes its slot before it reads the other members' slots.
//! At each member a sequentially consistent fence separates this write from the reads.
//! A slot's stamp is 0 while the slot is empty or being written.
//! A copy is valid if the stamp was equal before and after the copy.
//! The values read from a slot are compared, never used as pointers.

#![allow(unsafe_code)]

use crate::state::access_kind::AccessKind;
use mpi_base::atomic::{AtomicU64, Ordering, fence};
use mpi_base::mem::{Held, Shared};
use mpi_base::node::{Node, ShmBlock, ShmOffset};
use std::cell::Cell;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

/// The number of slots in each member's table.
const CELLS: usize = 512;

/// The names of the access calls. A slot holds an index into this list.
const CALLS: [&str; 5] = [
    "MPI_Put",
    "MPI_Get",
    "MPI_Accumulate",
    "MPI_Get_accumulate",
    "MPI_Compare_and_swap",
];

#[repr(C, align(64))]
pub(crate) struct Slot {
    stamp: AtomicU64,
    /// Lower half: the target's rank. Upper half: the index of the call in `CALLS`.
    whom: AtomicU64,
    kind: AtomicU64,
    from: AtomicU64,
    to: AtomicU64,
    phase: AtomicU64,
}

// SAFETY: the struct holds atomics only.
unsafe impl Shared for Slot {}

/// An access to bytes of one target. `phase` is the number of fences before the access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Doing {
    pub call: &'static str,
    pub target: u32,
    pub kind: AccessKind,
    pub bytes: Range<i64>,
    pub phase: u64,
}

/// An access of another member that conflicts with an access of this process.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Clash {
    pub origin: u32,
    pub call: &'static str,
    pub bytes: Range<i64>,
}

/// Encodes the kind of an access in one word.
/// Accesses with equal words may overlap, except two writes.
fn word(kind: AccessKind) -> u64 {
    const WRITE: u64 = 1;
    const READ: u64 = 2;
    match kind {
        AccessKind::Write => WRITE,
        AccessKind::Read => READ,
        AccessKind::Update(kind) => {
            // All members run the same library, so hashes agree. Equal hashes count as equal kinds.
            let mut hasher = DefaultHasher::new();
            kind.hash(&mut hasher);
            hasher.finish() | 1 << 63
        }
    }
}

fn conflict(a: u64, b: u64) -> bool {
    a != b || a == word(AccessKind::Write)
}

/// Allocates a member's table; zeroed memory is an empty table.
pub(crate) fn take(node: &Node) -> Option<ShmBlock> {
    node.alloc_large(CELLS * size_of::<Slot>(), align_of::<Slot>())
}

/// All tables on this node: this process's own and those of the other members.
pub(crate) struct Neighbours {
    mine: Held<[Slot]>,
    _block: ShmBlock,
    others: Vec<(u32, Held<[Slot]>)>,
    next: Cell<usize>,
    stamp: Cell<u64>,
}

impl Neighbours {
    /// Opens all tables on this node. `block` has this process's table;
    /// `others` lists the rank of each other member and the offset of its table.
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

    /// Records an access. Returns a conflicting access from another member's table, if any.
    pub fn begin(&self, doing: &Doing) -> Option<Clash> {
        let at = self.next.get();
        self.next.set((at + 1) % CELLS);
        let slot = &self.mine[at];
        slot.stamp.store(0, Ordering::SeqCst);
        let call = CALLS.iter().position(|name| *name == doing.call);
        let whom = u64::from(doing.target) | (call.unwrap_or(0) as u64) << 32;
        slot.whom.store(whom, Ordering::Relaxed);
        slot.kind.store(word(doing.kind), Ordering::Relaxed);
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
            // A refused access must not conflict with later ones, so its slot is cleared.
            slot.stamp.store(0, Ordering::SeqCst);
        }
        clash
    }

    fn clash(&self, doing: &Doing) -> Option<Clash> {
        let kind = word(doing.kind);
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
                        && conflict(seen.kind, kind)
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

    /// Removes this process's accesses to one target, or to all targets, after they are complete.
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

/// A copy of another member's slot.
struct Seen {
    call: &'static str,
    target: u32,
    kind: u64,
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
        kind: slot.kind.load(Ordering::Relaxed),
        bytes: slot.from.load(Ordering::Relaxed) as i64..slot.to.load(Ordering::Relaxed) as i64,
        phase: slot.phase.load(Ordering::Relaxed),
    };
    fence(Ordering::Acquire);
    (slot.stamp.load(Ordering::Relaxed) == stamp).then_some(seen)
}
