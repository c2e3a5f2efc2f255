//! The shared segment of a communicator: memory that rank 0 allocates and announces to the other members in its config blob.
//!
//! In the first cache line are two counters: of the members that have left (see [`SegmentLease`]),
//! and of the members that can read the memory of all others (see [`CmaAccess`]).
//! The barrier follows, then the cells for blocking calls, those for requests, and the words of [`ProtocolChoice`] if protocols are measured.
//! The slices are last, since they are long and many communicators do not use them.
//! The layout follows from the config blob and the number of members,
//! so all members compute the same layout.
//! Before a rank uses an offset from rank 0, it checks that the whole range is inside the node's memory.

use super::barrier::{Kind, ShmBarrier};
use super::cells::Cells;
use super::cma_access::CmaAccess;
use super::large::Large;
use super::layout::{FEW, Lane, Sizes};
use super::members::LINE;
use super::params::LongWay;
use super::protocol_choice::moves_data;
use super::protocol_choice::{self, First, ProtocolChoice};
use super::segment_config::SegmentConfig;
use super::segment_lease::SegmentLease;
use super::small::{Small, goes_in_rows};
use super::{State, WORD};
use crate::comm::Comm;
use crate::engine::Engine;
use crate::trial::Way;
use crate::{CallId, Refusal};
use mpi_base::atomic::AtomicU64;
use mpi_base::mem::{Held, PAGE};
use mpi_base::node::{Node, ShmOffset};
use mpi_base::occupancy::Occupancy;
use mpi_base::ring::NEAR;
use std::cell::RefCell;

/// Returns the number of bytes at the start of a segment that the first operations of few members use: counters, barrier, and short cells.
fn first_used(members: u32) -> usize {
    match members {
        0..=2 => 8 << 10,
        _ => 12 << 10,
    }
}

/// A member's access to the segment.
pub(super) struct Segment {
    pub(super) barrier: ShmBarrier,
    /// The cells of each [`Lane`]; `None` if the node's memory was full.
    pub(super) small: Option<[Small; 2]>,
    pub(super) large: Large,
    /// The choice of the protocol for data that can be sent in pieces.
    pub(super) long: Long,
    /// What decides the protocol of calls that are not measured:
    /// the occupancy that rank 0 has chosen, and whether the cores share only the last-level cache.
    fixed: (Occupancy, bool),
    /// True if reductions must compute the same expression for every placement of ranks; rank 0's setting.
    pub(super) reproducible: bool,
    /// The size in bytes of the segment without the slices, which are at its end.
    before_slices: usize,
    pub(super) lease: SegmentLease,
}

/// The protocol of long data: fixed or measured.
#[allow(
    clippy::large_enum_variant,
    reason = "a communicator has one, and a box would cost each long call a load"
)]
pub(super) enum Long {
    Measured(ProtocolChoice<Held<[AtomicU64]>>),
    Always(Way),
}

impl Segment {
    /// Returns true if a call must be passed to the next component although there are cells:
    /// a scan that must be reproducible,
    /// since the algorithm for scans between nodes computes another expression than `shm`.
    #[inline]
    pub(super) fn leaves(&self, call: CallId) -> bool {
        self.reproducible && matches!(call, CallId::Scan | CallId::Exscan)
    }

    /// Returns true if no operation has used the cells.
    pub(super) fn is_untouched(&self) -> bool {
        let mut lanes = self.small.iter().flatten();
        lanes.all(|small| small.cells.are_untouched())
    }

    /// Returns the number of operations of each lane, or `None` if the member `me` has not finished all of them.
    pub(super) fn finished_operations(&self, me: u32) -> Option<[u64; 2]> {
        let [blocking, requests] = self.small.as_ref()?.each_ref().map(|small| {
            let last = small.cells.next() - 1;
            small.cells.has_finished(me, last).then_some(last)
        });
        Some([blocking?, requests?])
    }

    /// Returns the occupancy for which the cells were laid out; `None` without cells.
    pub(super) fn occupancy(&self) -> Option<Occupancy> {
        let [blocking, _] = self.small.as_ref()?;
        Some(blocking.occupancy)
    }

    /// Returns the protocol of a call with long data that is not measured.
    pub(super) fn fixed_protocol(&self, call: CallId, bytes: u64) -> Way {
        fixed_protocol(self.fixed, call, bytes)
    }

    /// Returns the length in bytes of the start of the segment that may have been written,
    /// or `None` for the whole segment; if `untouched`, only the first line has been written.
    pub(super) fn used(&self, untouched: bool) -> Option<usize> {
        let mut lanes = self.small.iter().flatten();
        let has_used_slices = lanes.any(|small| small.cells.have_used_slices());
        match untouched {
            true => Some(LINE),
            false => (!has_used_slices).then_some(self.before_slices),
        }
    }
}

impl State {
    /// Imports rank 0's config blob and maps the segment.
    pub(super) fn meet(&self, comm: &Comm, config: &[u8]) -> Result<(), Refusal> {
        let Some(config) = SegmentConfig::read(config) else {
            return Err(Refusal("rank 0's part of the node's memory is full".into()));
        };
        let outside = || Refusal("rank 0 named a place outside of the node's memory".into());
        let (node, members) = (comm.engine().node(), &self.members);
        if members.count() <= FEW {
            // The creation of a communicator waits for messages anyway, so mapping the first pages during this time costs little.
            // The segments of many members have many pages, so these are not mapped in advance.
            node.map_ahead(config.place, first_used(members.count()));
        }
        let left = node.hold(config.place).ok_or_else(outside)?;
        let lease = SegmentLease::new(left, (self.block.take(), self.survives), members.count());
        let at = |offset: usize| ShmOffset(config.place.0 + offset as u64);
        let barrier = ShmBarrier::at(node, at(LINE), config.kind, members).ok_or_else(outside)?;
        let large = Large {
            readers: CmaAccess::new(node, members, node.hold(at(WORD)).ok_or_else(outside)?),
            from: config.single_copy_from,
            scratch: RefCell::default(),
        };
        let behind = LINE + config.kind.len(members.count());
        let (count, occupancy) = (members.count(), config.occupancy);
        let lens = match config.sizes {
            Sizes::NONE => [0, 0],
            sizes => sizes.lens(count, occupancy),
        };
        let slices = match config.sizes {
            Sizes::NONE => 0,
            sizes => sizes.len_of_slices(count, occupancy),
        };
        let ways = match config.long_way {
            LongWay(None) => protocol_choice::words(count) * WORD,
            LongWay(Some(_)) => 0,
        };
        let requests = behind + lens[0] - slices;
        let lane = |lane: Lane| -> Result<Small, Refusal> {
            let (place, gap) = match lane {
                Lane::Blocking => (at(behind), lens[1] + ways),
                Lane::Nonblocking => (at(requests), 0),
            };
            // `gap` is the length of the memory between this lane's other cells and its slices; without slices it is zero.
            let gap = if slices > 0 { gap } else { 0 };
            let cells = Cells::at(node, place, config.sizes, members, lane, occupancy, gap);
            Ok(Small {
                cells: cells.ok_or_else(outside)?,
                occupancy: config.occupancy,
                pieces_up_to: config.pieces_up_to,
            })
        };
        let small = match config.sizes {
            Sizes::NONE => None,
            _ => Some([lane(Lane::Blocking)?, lane(Lane::Nonblocking)?]),
        };
        let long = match config.long_way {
            LongWay(Some(way)) => Long::Always(way),
            // Without cells there is nothing to measure.
            LongWay(None) if small.is_none() => Long::Always(Way::Copy),
            LongWay(None) => {
                let place = at(requests + lens[1]);
                let memory = node.hold_all(place, protocol_choice::words(members.count()));
                let memory = memory.ok_or_else(outside)?;
                let first = |call, bytes| First {
                    way: initial_protocol(occupancy, call, bytes),
                    is_late: tries_pieces_late(occupancy, call),
                };
                let choice = ProtocolChoice::new(memory, members.me(), members.count(), first);
                Long::Measured(choice.ok_or_else(outside)?)
            }
        };
        let _ = self.place.set(Segment {
            barrier,
            small,
            large,
            long,
            fixed: (occupancy, node.ring_span() > NEAR),
            reproducible: config.reproducible,
            before_slices: requests + lens[1] + ways,
            lease,
        });
        Ok(())
    }

    /// Returns the occupancy of a communicator that is created now: the user's setting, or whether the ranks are oversubscribed.
    pub(super) fn occupancy_now(&self, engine: &Engine) -> Occupancy {
        let found = || engine.waiting().occupancy();
        self.occupancy.0.unwrap_or_else(found)
    }

    /// On rank 0: allocates the segment and returns its configuration; `None` if the memory is full.
    pub(super) fn open(&self, comm: &Comm) -> Option<SegmentConfig> {
        self.retired.sweep();
        let occupancy = self.occupancy_now(comm.engine());
        let kind = self.barrier.0.unwrap_or(Kind::fitting(occupancy));
        let node = comm.engine().node();
        let barrier = LINE + kind.len(self.members.count());
        let count = self.members.count();
        // If the cores share only the last-level cache, a member's slices take as many bytes as the used part (span) of a message ring.
        let cycled = match node.ring_span() {
            span if span > NEAR => span,
            _ => 0,
        };
        let sizes = self
            .sizes
            .unwrap_or_else(|| Sizes::affordable(count, occupancy, cycled, node.longest_free()));
        let cells: usize = sizes.lens(count, occupancy).iter().sum();
        let ways = match self.long_way {
            LongWay(None) => protocol_choice::words(count) * WORD,
            LongWay(Some(_)) => 0,
        };
        // The first operations of few members use whole pages, which `meet` maps.
        let align = if count <= FEW { PAGE } else { LINE };
        let (block, sizes) = match node.alloc(barrier + cells + ways, align) {
            Some(block) => (block, sizes),
            None => (node.alloc(barrier, LINE)?, Sizes::NONE),
        };
        let place = block.place();
        self.block.set(Some(block));
        Some(SegmentConfig {
            kind,
            occupancy,
            place,
            sizes,
            single_copy_from: self.single_copy_from,
            pieces_up_to: self.pieces_up_to,
            long_way: self.long_way,
            reproducible: self.reproducible,
        })
    }
}

impl Segment {
    /// On rank 0: populates the first pages of the memory that the next communicator of the same size will get.
    ///
    /// A new page costs 5 us, and the members of a new communicator would wait for rank 0's pages.
    pub(super) fn populate_ahead(&self, node: &Node, members: u32) {
        let block = self.lease.len().and_then(|len| node.alloc(len, PAGE));
        if let Some(mut block) = block {
            node.map_ahead(block.place(), first_used(members));
            // The pages still contain zeroes.
            block.is_clean_behind(0);
        }
    }
}

/// Length in bytes from which calls for which [`begins_in_pieces`] is false use single copies until both protocols have been measured:
/// pieces would be the first to touch the cells,
/// and their page faults cost more time than the single copies.
const COPIED_FIRST: u64 = 64 << 10;

/// Length in bytes from which a broadcast that is not measured, between cores
/// that share only the last-level cache, uses single copies.
const BROADCAST_COPIED: u64 = 512 << 10;

/// Length of a block in bytes from which calls whose data are sent in rows use single copies until both protocols have been measured:
/// in rows, each member would write one block per other member to untouched pages.
const ROWS_COPIED_FIRST: u64 = 64 << 10;

/// Returns true for reduce-scatters and scans.
/// Their single copies may need temporary memory as long as the data (with `MPI_IN_PLACE`, or for the prefix of the next rank),
/// and its page faults would cost more time than those of the cells, in each call.
fn begins_in_pieces(call: CallId) -> bool {
    !moves_data(call) && !matches!(call, CallId::Reduce | CallId::Allreduce)
}

/// Returns true for collectives that try pieces only after many calls
/// ([`first_trial`](crate::trial::first_trial)), because single copies are rarely slower for them.
///
/// Oversubscribed ranks reduce faster in pieces, so they try pieces at once.
fn tries_pieces_late(occupancy: Occupancy, call: CallId) -> bool {
    moves_data(call) || (occupancy == Occupancy::Dedicated && !begins_in_pieces(call))
}

/// Returns the protocol of the first calls with long data, if both protocols are measured.
fn initial_protocol(occupancy: Occupancy, call: CallId, bytes: u64) -> Way {
    match occupancy {
        Occupancy::Dedicated if bytes < COPIED_FIRST || begins_in_pieces(call) => Way::Fragments,
        Occupancy::Oversubscribed if goes_in_rows(call, occupancy) && bytes < ROWS_COPIED_FIRST => {
            Way::Fragments
        }
        // In pieces, the sender would be switched out and in again every few pieces if the ranks are oversubscribed.
        _ => Way::Copy,
    }
}

/// Returns the protocol of calls with long data that are not measured.
/// `is_cycled` is true if the cores share only the last-level cache.
fn fixed_protocol((occupancy, is_cycled): (Occupancy, bool), call: CallId, bytes: u64) -> Way {
    match occupancy {
        Occupancy::Dedicated => {
            match is_cycled && call == CallId::Bcast && bytes >= BROADCAST_COPIED {
                true => Way::Copy,
                false => Way::Fragments,
            }
        }
        Occupancy::Oversubscribed => initial_protocol(occupancy, call, bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_data_begin_with_single_copies() {
        for (occupancy, call, bytes, way) in [
            (
                Occupancy::Dedicated,
                CallId::Bcast,
                32 << 10,
                Way::Fragments,
            ),
            (Occupancy::Dedicated, CallId::Bcast, 64 << 10, Way::Copy),
            (Occupancy::Dedicated, CallId::Reduce, 1 << 20, Way::Copy),
            (Occupancy::Dedicated, CallId::Allreduce, 1 << 20, Way::Copy),
            (
                Occupancy::Dedicated,
                CallId::Exscan,
                1 << 20,
                Way::Fragments,
            ),
            (
                Occupancy::Oversubscribed,
                CallId::Allreduce,
                1 << 20,
                Way::Copy,
            ),
            (
                Occupancy::Oversubscribed,
                CallId::Alltoall,
                16 << 10,
                Way::Fragments,
            ),
            (
                Occupancy::Oversubscribed,
                CallId::Alltoall,
                64 << 10,
                Way::Copy,
            ),
            (
                Occupancy::Oversubscribed,
                CallId::Bcast,
                16 << 10,
                Way::Copy,
            ),
        ] {
            assert_eq!(
                initial_protocol(occupancy, call, bytes),
                way,
                "{call:?} {bytes}"
            );
        }
    }

    #[test]
    fn reductions_try_pieces_late_if_each_rank_has_a_core() {
        for (occupancy, call, is_late) in [
            (Occupancy::Dedicated, CallId::Allreduce, true),
            (Occupancy::Dedicated, CallId::Scan, false),
            (Occupancy::Oversubscribed, CallId::Allreduce, false),
            (Occupancy::Oversubscribed, CallId::Bcast, true),
        ] {
            assert_eq!(tries_pieces_late(occupancy, call), is_late, "{call:?}");
        }
    }

    #[test]
    fn unmeasured_calls_use_pieces_with_a_core_per_rank() {
        let fixed =
            |is_cycled, call, bytes| fixed_protocol((Occupancy::Dedicated, is_cycled), call, bytes);
        for (call, bytes, way) in [
            (CallId::Bcast, 1 << 20, Way::Copy),
            (CallId::Bcast, 64 << 10, Way::Fragments),
            (CallId::Allreduce, 1 << 20, Way::Fragments),
        ] {
            assert_eq!(fixed(true, call, bytes), way);
            assert_eq!(fixed(false, call, bytes), Way::Fragments);
        }
    }
}
