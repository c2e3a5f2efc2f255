//! A communicator's cells for data (see [`mpi_base::cells`]), and the waits for free cells.
//!
//! [`layout`](super::layout) computes the lengths of the cells and the numbers of cells in their rings.
//!
//! A communicator has two sets of cells, one per [`Lane`], so that a blocking call need not wait until an earlier request has finished.
//! A rank that must wait for slower ranks registers as a waiter, and a rank that finishes wakes it.
//! With a core per rank, ranks often finish but seldom wait, so the waiter executes the fence for both ([`mpi_base::fence`]).
//! A rank that finishes a long operation executes the fence itself,
//! since a fence by the waiter would interrupt ranks that are copying.

use super::layout::{self, Flow, Lane, Layout, RINGS, Sizes};
use super::members::{LINE, Members};
use super::poll_delay::PollDelay;
use super::wait::Wait;
use crate::Error;
use crate::engine::Engine;
use mpi_base::atomic::{AtomicU64, Ordering, fence};
use mpi_base::cells::{self, CellAddress, CellRing, Cells as Board};
use mpi_base::fence::{heavy, light};
use mpi_base::mem::Held;
use mpi_base::node::{Node, ShmOffset};
use mpi_base::occupancy::Occupancy;
use std::cell::Cell;
use std::ops::Deref;

/// A ring of cells, and the maximum lengths in bytes of a member's data and of a result for which the ring is used.
#[derive(Clone, Copy)]
struct Choice {
    cell_ring: CellRing,
    bytes: usize,
    bytes_of_result: usize,
}

/// Returns the first ring for which `has_room` returns true, or else the last ring,
/// which is always large enough.
#[inline(always)]
fn first(choices: &[Choice; RINGS], has_room: impl Fn(&Choice) -> bool) -> &CellRing {
    let [short, middling, slice, long] = choices;
    match () {
        () if has_room(short) => &short.cell_ring,
        () if has_room(middling) => &middling.cell_ring,
        () if has_room(slice) => &slice.cell_ring,
        () => &long.cell_ring,
    }
}

pub struct Cells {
    board: Board<Held<[AtomicU64]>>,
    lane: Lane,
    /// For each [`Flow`], the rings from the shortest cells to the longest.
    choices: [[Choice; RINGS]; 2],
    /// The number of the last operation begun on this rank.
    number: Cell<u64>,
    /// True if an operation may have used slices; the value is the same on all ranks.
    has_used_slices: Cell<bool>,
    poll_delay: PollDelay,
    /// True if ranks are oversubscribed,
    /// so that waits are frequent and the finishing rank executes the fence.
    /// Otherwise the waiter executes the fence for both.
    shared: bool,
}

impl Deref for Cells {
    type Target = Board<Held<[AtomicU64]>>;

    #[inline]
    fn deref(&self) -> &Self::Target {
        &self.board
    }
}

impl Cells {
    /// Returns the cells at `place`, or `None` if they are not all inside the node's memory; the slices begin `gap` bytes after the other cells.
    pub fn at(
        node: &Node,
        place: ShmOffset,
        sizes: Sizes,
        members: &Members,
        lane: Lane,
        occupancy: Occupancy,
        gap: usize,
    ) -> Option<Cells> {
        if !sizes.are_possible() {
            return None;
        }
        let Layout { rings, choices } = Layout::of(lane, sizes, members.count(), occupancy);
        let gap = gap / size_of::<u64>();
        let words = node.hold_all(place, cells::words(members.count(), &rings) + gap)?;
        let mut tracks = cells::cell_rings(members.count(), &rings);
        if let (Lane::Blocking, 1.., Some(slices)) = (lane, sizes.slices, tracks.last_mut()) {
            *slices = slices.moved_by(gap);
        }
        let choice = |(ring, most): (usize, usize)| {
            let (bytes, bytes_of_result) = CellRing::capacities(most);
            Choice {
                cell_ring: tracks[ring],
                bytes,
                bytes_of_result,
            }
        };
        let choices = choices.map(|of_flow| of_flow.map(choice));
        Some(Cells {
            board: Board::new(words, members.me(), members.count(), &rings)?,
            lane,
            choices,
            number: Cell::new(0),
            has_used_slices: Cell::new(false),
            poll_delay: PollDelay::new(lane == Lane::Blocking && occupancy == Occupancy::Dedicated),
            shared: occupancy == Occupancy::Oversubscribed,
        })
    }

    #[inline(always)]
    pub fn poll_delay(&self) -> &PollDelay {
        &self.poll_delay
    }

    pub fn lane(&self) -> Lane {
        self.lane
    }

    /// Returns the maximum number of bytes that a member can publish in one cell.
    pub fn capacity(&self) -> usize {
        let [.., long] = self.choices[Flow::CooperativeCopy as usize];
        long.bytes
    }

    /// Returns the address of an operation's data; `bytes` is the maximum length of a member's data and of the result in bytes.
    #[inline(always)]
    pub fn address(&self, number: u64, flow: Flow, bytes: usize) -> CellAddress<'_> {
        let [short, middling, slice, long] = &self.choices[flow as usize];
        let choice = match () {
            () if bytes <= short.bytes => short,
            () if bytes <= middling.bytes => middling,
            () => {
                self.has_used_slices.set(true);
                if bytes <= slice.bytes { slice } else { long }
            }
        };
        choice.cell_ring.address(number)
    }

    /// Returns `address` with the cells for the operation's result, which has at most `bytes` bytes.
    #[inline(always)]
    pub fn with_result<'a>(
        &'a self,
        address: CellAddress<'a>,
        flow: Flow,
        bytes: usize,
    ) -> CellAddress<'a> {
        let choices = &self.choices[flow as usize];
        address.with_result(first(choices, |ring| bytes <= ring.bytes_of_result))
    }

    /// Returns the address of an operation on long data that has no result.
    pub fn long_address(&self, number: u64) -> CellAddress<'_> {
        let [short, .., long] = &self.choices[Flow::CooperativeCopy as usize];
        long.cell_ring.address(number).with_result(&short.cell_ring)
    }

    /// Returns the address of a piece of long data.
    pub fn piece_address(&self, number: u64) -> CellAddress<'_> {
        self.has_used_slices.set(true);
        let [.., slice, _] = &self.choices[Flow::CooperativeCopy as usize];
        slice.cell_ring.address(number)
    }

    /// Returns the maximum length in bytes of data that are sent in one cell and not in pieces.
    pub fn undivided(&self) -> usize {
        let [.., slice, _] = self.choices[Flow::CooperativeCopy as usize];
        slice.bytes
    }

    /// Returns true if pieces have cells of their own, the slices.
    pub fn has_slices(&self) -> bool {
        self.undivided() < self.capacity()
    }

    /// Returns the length of a piece in bytes: a whole number of elements of any predefined type.
    pub fn piece(&self) -> usize {
        self.undivided() / LINE * LINE
    }

    /// Returns the number of pieces that a member can publish before the others have read the first piece; the last piece may be short.
    pub fn pieces_at_once(&self) -> u64 {
        let depths = self.choices[Flow::OneWay as usize]
            .iter()
            .map(|choice| choice.cell_ring.depth_at_first());
        depths.min().unwrap_or(layout::DEPTH)
    }

    /// Begins `how_many` operations on this rank and returns the number of the first.
    #[inline]
    pub fn begin(&self, how_many: u64) -> u64 {
        let last = self.number.get();
        self.number.set(last + how_many);
        last + 1
    }

    /// Returns the number that the next operation will get.
    pub fn next(&self) -> u64 {
        self.number.get() + 1
    }

    /// Prefetches, for writing, this rank's short cell of the next operation in which all ranks wait for each other.
    pub fn prefetch_next_short(&self) {
        let [short, ..] = &self.choices[Flow::CooperativeCopy as usize];
        self.board
            .prefetch()
            .own(short.cell_ring.address(self.next()));
    }

    /// Returns true if no operation has begun. No member has written to the cells then, since all members begin the same operations.
    pub fn are_untouched(&self) -> bool {
        self.number.get() == 0
    }

    /// Returns true if an operation may have used slices; every member has begun that operation too.
    pub fn have_used_slices(&self) -> bool {
        self.has_used_slices.get()
    }

    /// Records that all members have finished all operations so far:
    /// called when every member waits at the same point of the program.
    #[inline]
    pub fn all_here(&self) {
        self.all_past(self.number.get());
    }

    /// Waits until no rank can be reading the previous contents of an operation's cells any more.
    #[inline]
    pub async fn make_room(
        &self,
        wait: impl Wait,
        engine: &Engine,
        address: CellAddress<'_>,
    ) -> Result<(), Error> {
        if self.has_room(address) {
            return Ok(());
        }
        let has_room = || self.has_room(address);
        self.wait_for_members(wait, engine, self.shared, has_room)
            .await
    }

    /// Waits until the other ranks selected by `is_waited_for` have finished an operation
    /// with [`Cells::end_long`], and all operations before it.
    #[inline]
    pub async fn await_end(
        &self,
        wait: impl Wait,
        engine: &Engine,
        members: &Members,
        number: u64,
        is_waited_for: impl Fn(u32) -> bool,
    ) -> Result<(), Error> {
        let others = || members.others().filter(|rank| is_waited_for(*rank));
        let finished = || others().all(|rank| self.has_finished(rank, number));
        // The argument `fenced` may be true even if requests finish out of order,
        // since each `end_long` call executes a fence.
        self.wait_for_members(wait, engine, true, finished).await
    }

    /// Waits until `done` returns true, because other ranks have finished an operation.
    /// They ring this rank's doorbell if the number of waiters is not zero.
    /// `fenced` is true if the finishing ranks execute a fence.
    async fn wait_for_members(
        &self,
        wait: impl Wait,
        engine: &Engine,
        fenced: bool,
        mut done: impl FnMut() -> bool,
    ) -> Result<(), Error> {
        if wait.briefly(engine, &mut done) {
            return Ok(());
        }
        self.waiters().fetch_add(1, Ordering::SeqCst);
        // SYNC POINT shm.waiters: either a rank that finishes from now on reads that there is a waiter, or the waiter reads that the rank has finished.
        if !fenced {
            heavy();
        }
        wait.until(engine, done).await?;
        self.waiters().fetch_sub(1, Ordering::Relaxed);
        Ok(())
    }

    /// Finishes an operation in which this rank has observed the arrival of every member.
    #[inline(always)]
    pub fn end_together(&self, members: &Members, number: u64) {
        match self.lane {
            Lane::Blocking => {
                // A member arrives only after it has finished the previous operation, so all members have finished that one.
                self.all_past(number - 1);
                self.finish(number);
            }
            Lane::Nonblocking => self.end(members, number),
        }
    }

    /// Finishes an operation. Other ranks may be waiting until this rank has finished it.
    #[inline(always)]
    pub fn end(&self, members: &Members, number: u64) {
        self.finish(number);
        // SYNC POINT shm.waiters: either this rank executes the fence here,
        // or the waiter executes it for this rank, if the operating system supports that.
        light();
        if self.shared || !members.light() {
            fence(Ordering::SeqCst);
        }
        self.wake_waiters(members);
    }

    /// Finishes a long operation, for which other ranks usually wait: a fence here costs less than the fences of the waiters.
    pub fn end_long(&self, members: &Members, number: u64) {
        self.finish(number);
        // SYNC POINT shm.waiters
        fence(Ordering::SeqCst);
        self.wake_waiters(members);
    }

    #[inline(always)]
    fn wake_waiters(&self, members: &Members) {
        if self.waiters().load(Ordering::Relaxed) > 0 {
            members.ring_all();
        }
    }
}
