//! Where the members meet: memory that rank 0 takes and all of them find by its letter.
//!
//! Its first line counts the members that have left (see [`SegmentLease`]) and those that can read the others' memory (see [`CmaAccess`]);
//! behind it are the gate, two sets of cells, for calls that wait and for requests, and the words about ways, if those are measured.
//! How long each part is follows from the letter and the number of members, so all find the same;
//! and no rank looks at a place that rank 0 has named unless all of it is inside the node's memory.

use super::barrier::{Kind, ShmBarrier};
use super::cells::{self, Cells, Lane};
use super::cma_access::CmaAccess;
use super::large::Large;
use super::members::LINE;
use super::params::LongWay;
use super::protocol_choice::{self, ProtocolChoice};
use super::segment_config::SegmentConfig;
use super::segment_lease::SegmentLease;
use super::small::{Small, goes_in_rows};
use super::{State, WORD};
use crate::comm::Comm;
use crate::trial::Way;
use crate::{CallId, Refusal};
use mpi_base::atomic::AtomicU64;
use mpi_base::mem::Held;
use mpi_base::node::ShmOffset;
use std::cell::RefCell;

/// What a member has found there.
pub(super) struct Segment {
    pub(super) gate: ShmBarrier,
    /// By [`Lane`], unless the node's memory had no room for them.
    pub(super) small: Option<[Small; 2]>,
    pub(super) large: Large,
    /// Which way data go that can go in pieces.
    pub(super) long: Long,
    /// Whether reductions compute the same expression wherever their ranks lie; rank 0's choice.
    pub(super) reproducible: bool,
    pub(super) lease: SegmentLease,
}

/// Which of two ways.
pub(super) enum Long {
    Measured(ProtocolChoice<Held<[AtomicU64]>>),
    Always(Way),
}

impl Segment {
    /// Whether a call is left to the next component although there are cells:
    /// the expression of the one algorithm for scans that also runs between nodes is another one.
    #[inline]
    pub(super) fn leaves(&self, call: CallId) -> bool {
        self.reproducible && matches!(call, CallId::Scan | CallId::Exscan)
    }

    /// Whether it has been met at and nothing was said in the cells.
    pub(super) fn is_untouched(&self) -> bool {
        let mut lanes = self.small.iter().flatten();
        lanes.all(|small| small.cells.are_untouched())
    }
}

impl State {
    /// Finds the place that rank 0 has named.
    pub(super) fn meet(&self, comm: &Comm, letter: &[u8]) -> Result<(), Refusal> {
        let Some(letter) = SegmentConfig::read(letter) else {
            return Err(Refusal("rank 0's part of the node's memory is full".into()));
        };
        let outside = || Refusal("rank 0 named a place outside of the node's memory".into());
        let (node, members) = (comm.engine().node(), &self.members);
        let left = node.hold(letter.place).ok_or_else(outside)?;
        let lease = SegmentLease::new(left, (self.block.take(), self.survives), members.count());
        let at = |offset: usize| ShmOffset(letter.place.0 + offset as u64);
        let gate = ShmBarrier::at(node, at(LINE), letter.kind, members).ok_or_else(outside)?;
        let large = Large {
            readers: CmaAccess::new(node, members, node.hold(at(WORD)).ok_or_else(outside)?),
            from: letter.single_copy_from,
            room: RefCell::default(),
        };
        let behind = LINE + letter.kind.len(members.count());
        let lane = |lane: Lane| -> Result<Small, Refusal> {
            let before = match lane {
                Lane::Blocking => 0,
                Lane::Nonblocking => {
                    Cells::len(members.count(), letter.cell, Lane::Blocking, letter.kind)
                }
            };
            let place = at(behind + before);
            let cells = Cells::at(node, place, letter.cell, members, lane, letter.kind);
            Ok(Small {
                cells: cells.ok_or_else(outside)?,
                kind: letter.kind,
                pieces_up_to: letter.pieces_up_to,
            })
        };
        let small = match letter.cell {
            0 => None,
            _ => Some([lane(Lane::Blocking)?, lane(Lane::Nonblocking)?]),
        };
        let long = match letter.long_way {
            LongWay(Some(way)) => Long::Always(way),
            // Nothing is taken up without cells.
            LongWay(None) if small.is_none() => Long::Always(Way::Copy),
            LongWay(None) => {
                let cells: usize = cells::lens(members.count(), letter.cell, letter.kind)
                    .iter()
                    .sum();
                let place = at(behind + cells);
                let memory = node.hold_all(place, protocol_choice::words(members.count()));
                let memory = memory.ok_or_else(outside)?;
                let first = |call| usual(letter.kind, call);
                let ways = ProtocolChoice::new(memory, members.me(), members.count(), first);
                Long::Measured(ways.ok_or_else(outside)?)
            }
        };
        let _ = self.place.set(Segment {
            gate,
            small,
            large,
            long,
            reproducible: letter.reproducible,
            lease,
        });
        Ok(())
    }

    /// Rank 0's part: takes the memory; no letter says that there was none.
    pub(super) fn open(&self, comm: &Comm) -> Option<SegmentConfig> {
        self.retired.sweep();
        let fitting = || match comm.engine().is_oversubscribed() {
            true => Kind::Counter,
            false => Kind::Flags,
        };
        let kind = self.choice.0.unwrap_or_else(fitting);
        let node = comm.engine().node();
        let gate = LINE + kind.len(self.members.count());
        let count = self.members.count();
        let cell = self.cell.unwrap_or_else(|| {
            let fitting = cells::fitting_cell(count, kind);
            cells::affordable_cell(fitting, count, kind, node.longest_free())
        });
        let cells: usize = cells::lens(count, cell, kind).iter().sum();
        let ways = match self.long_way {
            LongWay(None) => protocol_choice::words(count) * WORD,
            LongWay(Some(_)) => 0,
        };
        let (block, cell) = match node.alloc(gate + cells + ways, LINE) {
            Some(block) => (block, cell),
            None => (node.alloc(gate, LINE)?, 0),
        };
        let place = block.place();
        self.block.set(Some(block));
        Some(SegmentConfig {
            kind,
            place,
            cell,
            single_copy_from: self.single_copy_from,
            pieces_up_to: self.pieces_up_to,
            long_way: self.long_way,
            reproducible: self.reproducible,
        })
    }
}

/// The way that long data go as long as nothing else is known.
fn usual(kind: Kind, call: CallId) -> Way {
    match kind {
        Kind::Flags => Way::Fragments,
        Kind::Counter if goes_in_rows(call, kind) => Way::Fragments,
        // The giver would be switched out and in for every few pieces.
        Kind::Counter => Way::Copy,
    }
}
