//! A communicator's cells (see [`mpi_base::cells`]), and waiting for free cells.
//!
//! Long data use long cells, [`DEPTH`] per member. Short data use short cells of their own, adjacent to each other;
//! only where few members wait for each other are these spaced apart, by a few lines: the first operations of a communicator then touch two pages.
//! Where no rank waits for all others ([`Flow::OneWay`]) rings of short cells are deep, so that the sender may run far ahead:
//! when oversubscribed, each wait for a free cell costs context switches (docs/adr/0019-short-data-have-short-cells.md).
//!
//! A communicator has two sets of cells, one per [`Lane`], so that a blocking call never gets a number behind a request.
//! A rank that must wait for slower ranks registers as a waiter, and a rank that finishes wakes it.
//! With a core per rank, finishing is frequent and waiting rare, so the waiter executes the fence for both ([`mpi_base::fence`]);
//! a rank that finishes a long operation executes its own, since that interrupts no rank that is copying.

use super::members::{LINE, Members};
use super::poll_delay::PollDelay;
use super::wait::Wait;
use crate::Error;
use crate::engine::Engine;
use mpi_base::atomic::{AtomicU64, Ordering, fence};
use mpi_base::cells::{self, CellAddress, CellRing, Cells as Board, DEEPEST, Ring};
use mpi_base::fence::{heavy, light};
use mpi_base::mem::Held;
use mpi_base::node::{Node, ShmOffset};
use mpi_base::occupancy::Occupancy;
use std::cell::Cell;
use std::ops::Deref;

const WORD: usize = size_of::<u64>();

/// The number of operations on long data in progress at once; [`Flow::OneWay`] operations on short data may be more.
pub const DEPTH: u64 = 4;

/// The maximum cell size.
pub const LONGEST: usize = (64 << 10) + LINE;

// A published length that no cell has means a message.
const _: () = assert!(LONGEST < cells::LONGEST_PUBLISHED);

/// One communicator's cells get at most 1 / `SHARE` of the memory left, unless they are as short as `SHORTEST`.
const SHARE: usize = 32;
const SHORTEST: usize = (1 << 10) + LINE;

/// The cell size for pieces: with longer cells fewer cache lines travel to announce pieces, but they take more memory.
const PIECE: usize = (32 << 10) + LINE;

/// The cell size of short data.
pub const SHORT: usize = LINE;

/// The cell size of slightly longer data.
pub const MIDDLING: usize = (1 << 10) + LINE;

/// The distance of cells for short and for slightly longer data that are spaced apart.
const SHORT_APART: usize = 4 * LINE;
const MIDDLING_APART: usize = 2 << 10;

/// The number of short or medium cells per member for operations in which no rank waits for all others.
///
/// When oversubscribed, ranks are scheduled in any order, and in a series of scans a rank gets no further per time slice than its predecessor has.
/// So deeper rings save switches: scans of 8 bytes on 32 ranks take 0.20 switches per rank at depth 64, 0.07 at 256 and 0.04 at 512.
/// The depth is reduced where the cells would exceed `MEMORY`, but not below `enough`.
pub fn depth(cell: usize, members: u32, occupancy: Occupancy) -> u64 {
    const MEMORY: usize = 4 << 20;
    let enough = match cell {
        SHORT => 64,
        _ => 32,
    };
    let row = (members as usize + 2) * cell;
    let halves = std::iter::successors(Some(DEEPEST), |depth| Some(depth / 2));
    let mut deep = halves.take_while(|depth| *depth > enough);
    let affordable = deep.find(|depth| *depth as usize * row <= MEMORY);
    match occupancy {
        Occupancy::Oversubscribed => affordable.unwrap_or(enough),
        Occupancy::Dedicated => enough,
    }
}

/// The maximum number of members for which requests have long cells too.
pub const FEW: u32 = 4;

/// The maximum cell size of requests: they are rarer than blocking calls, and with many members their cells are not worth as much memory.
///
/// With few members the four cells hold 128 KiB: 64 KiB from one of two ranks to the other took 13.7 us in a single copy, and takes 1.7 us in cells.
fn longest_of_requests(members: u32) -> usize {
    match members {
        0..=FEW => PIECE,
        _ => (8 << 10) + LINE,
    }
}

/// The default cell size, if there is memory enough. With a core per rank, the more members there are, the shorter are the cells.
///
/// When oversubscribed, data that fit one cell let a rank continue before another is scheduled in, and two copies are faster than a single copy
/// by the kernel, whose page lookups cost as much as the copying. Unused cells are never touched.
pub fn fitting_cell(members: u32, occupancy: Occupancy) -> usize {
    match (members, occupancy) {
        (_, Occupancy::Oversubscribed) => LONGEST,
        (0..=4, Occupancy::Dedicated) => PIECE,
        (5..=16, Occupancy::Dedicated) => (4 << 10) + LINE,
        (_, Occupancy::Dedicated) => (1 << 10) + LINE,
    }
}

/// The largest cell size up to `longest` whose cells take at most 1 / `SHARE` of the memory left, but at least `SHORTEST` if `longest` is.
/// So cells shrink as communicators are added, and many communicators get some before one gets none.
pub fn affordable_cell(longest: usize, members: u32, occupancy: Occupancy, left: usize) -> usize {
    let needs = |cell: usize| -> usize { lens(members, cell, occupancy).iter().sum() };
    let halves = std::iter::successors(Some(longest), |cell| Some((cell - LINE) / 2 + LINE));
    let mut worthwhile = halves.take_while(|cell| *cell >= SHORTEST);
    let affordable = worthwhile.find(|cell| needs(*cell) <= left / SHARE);
    affordable.unwrap_or(SHORTEST.min(longest))
}

/// The bytes that the cells of each lane need.
pub fn lens(members: u32, cell: usize, occupancy: Occupancy) -> [usize; 2] {
    [Lane::Blocking, Lane::Nonblocking].map(|lane| Cells::len(members, cell, lane, occupancy))
}

/// The cell size of a lane, given that of blocking calls.
pub fn cell_of(lane: Lane, cell: usize, members: u32) -> usize {
    match lane {
        Lane::Blocking => cell,
        Lane::Nonblocking => cell.min(longest_of_requests(members)),
    }
}

/// Rounds a requested cell size to whole lines, at least one and at most [`LONGEST`].
pub fn possible_cell(wish: usize) -> usize {
    wish.clamp(LINE, LONGEST).next_multiple_of(LINE)
}

/// The dependencies between the ranks of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// No rank completes before all have arrived.
    CooperativeCopy,
    /// A rank that has sent its data continues.
    OneWay,
}

/// The rings of a lane.
struct Layout {
    rings: Vec<Ring>,
    /// By [`Flow`]: indices into `rings`, from the shortest cells to the longest.
    choices: [[usize; 3]; 2],
}

impl Layout {
    /// The layout of a lane, given the cell size of blocking calls.
    fn of(lane: Lane, cell: usize, members: u32, occupancy: Occupancy) -> Layout {
        let longest = cell_of(lane, cell, members);
        // Requests may complete in any order, but the rank that works for all must know that no rank still reads an earlier result.
        let is_deep = lane == Lane::Blocking && longest > MIDDLING;
        let mut rings = Vec::new();
        let choices = [Flow::CooperativeCopy, Flow::OneWay].map(|flow| {
            let deep = |cell| match flow {
                Flow::OneWay if is_deep => depth(cell, members, occupancy),
                _ => DEPTH,
            };
            let of = [
                (SHORT, deep(SHORT)),
                (MIDDLING, deep(MIDDLING)),
                (longest, DEPTH),
            ];
            // With few members, prefetching beyond one member's cell reaches the cell that the next member is writing, so these are spaced apart:
            // 1 KiB on two ranks, adjacent and apart: allreduce 0.178 and 0.168 us, allgather 0.179 and 0.171.
            // 8 bytes on 60 oversubscribed ranks, adjacent and apart: allgather 77 and 100 us, alltoall 79 and 125.
            // Two members' cells need only be further apart than that; the distance of long cells would put each into a page of its own.
            let apart = flow == Flow::CooperativeCopy && members <= FEW;
            of.map(|(length, depth)| {
                let cell = match (apart, length) {
                    (true, SHORT) => SHORT_APART.min(longest),
                    (true, MIDDLING) => MIDDLING_APART.min(longest),
                    _ => length.min(longest),
                };
                let ring = Ring { cell, depth };
                let known = rings.iter().position(|known| *known == ring);
                known.unwrap_or_else(|| {
                    rings.push(ring);
                    rings.len() - 1
                })
            })
        });
        Layout { rings, choices }
    }
}

/// A ring, and its capacity for one member's data and for a result.
#[derive(Clone, Copy)]
struct Choice {
    cell_ring: CellRing,
    bytes: usize,
    bytes_of_result: usize,
}

/// Returns the first ring with sufficient capacity, or the last; no caller asks for more than the last ring holds.
#[inline(always)]
fn first(choices: &[Choice; 3], has_room: impl Fn(&Choice) -> bool) -> &CellRing {
    let [short, middling, long] = choices;
    match () {
        () if has_room(short) => &short.cell_ring,
        () if has_room(middling) => &middling.cell_ring,
        () => &long.cell_ring,
    }
}

/// A set of cells, by the kind of calls that use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Blocking calls: a rank that begins one has finished all before it.
    Blocking,
    /// Requests: several may be in progress, and they complete in any order.
    Nonblocking,
}

pub struct Cells {
    board: Board<Held<[AtomicU64]>>,
    lane: Lane,
    /// By [`Flow`], from the shortest cells to the longest.
    choices: [[Choice; 3]; 2],
    /// The number of the last operation begun on this rank.
    number: Cell<u64>,
    poll_delay: PollDelay,
    /// True if waiters are frequent, as when oversubscribed: then the finishing rank executes the fence, otherwise the waiter does.
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
    /// The bytes of a lane's cells for `members` members, given the cell size of blocking calls.
    pub fn len(members: u32, cell: usize, lane: Lane, occupancy: Occupancy) -> usize {
        cells::words(members, &Layout::of(lane, cell, members, occupancy).rings) * WORD
    }

    /// The cells at `place`, if all of them are inside the node's memory.
    pub fn at(
        node: &Node,
        place: ShmOffset,
        cell: usize,
        members: &Members,
        lane: Lane,
        occupancy: Occupancy,
    ) -> Option<Cells> {
        if possible_cell(cell) != cell {
            return None;
        }
        let Layout { rings, choices } = Layout::of(lane, cell, members.count(), occupancy);
        let words = node.hold_all(place, cells::words(members.count(), &rings))?;
        let tracks = cells::cell_rings(members.count(), &rings);
        Some(Cells {
            board: Board::new(words, members.me(), members.count(), &rings)?,
            lane,
            choices: choices.map(|[short, middling, long]| {
                let choice = |ring: usize, most: usize| {
                    // Cells that are spaced apart are longer than the data for which they are used.
                    let (bytes, bytes_of_result) = CellRing::capacities(rings[ring].cell.min(most));
                    Choice {
                        cell_ring: tracks[ring],
                        bytes,
                        bytes_of_result,
                    }
                };
                [
                    choice(short, SHORT),
                    choice(middling, MIDDLING),
                    choice(long, LONGEST),
                ]
            }),
            number: Cell::new(0),
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

    /// The maximum number of bytes that a member can show.
    pub fn capacity(&self) -> usize {
        let [.., long] = self.choices[Flow::CooperativeCopy as usize];
        long.bytes
    }

    /// The address of an operation's data, if neither a member's data nor the result are longer than `bytes`.
    #[inline(always)]
    pub fn address(&self, number: u64, flow: Flow, bytes: usize) -> CellAddress<'_> {
        let choices = &self.choices[flow as usize];
        first(choices, |ring| bytes <= ring.bytes).address(number)
    }

    /// The same operation with a result of `bytes` bytes.
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

    /// The address of an operation on long data without a result.
    pub fn long_address(&self, number: u64) -> CellAddress<'_> {
        let [short, .., long] = &self.choices[Flow::CooperativeCopy as usize];
        long.cell_ring.address(number).with_result(&short.cell_ring)
    }

    /// The bytes per piece of data that are longer than a cell: a whole number of elements of any predefined type.
    pub fn piece(&self) -> usize {
        self.capacity() / LINE * LINE
    }

    /// Begins `how_many` operations and returns the number of the first.
    #[inline]
    pub fn begin(&self, how_many: u64) -> u64 {
        let last = self.number.get();
        self.number.set(last + how_many);
        last + 1
    }

    /// The number of the next operation.
    pub fn next(&self) -> u64 {
        self.number.get() + 1
    }

    /// Returns true if no operation has begun; then no member has written anything, since all begin the same operations.
    pub fn are_untouched(&self) -> bool {
        self.number.get() == 0
    }

    /// Records that every member waits at this point of the program, so all have finished the operations before it.
    #[inline]
    pub fn all_here(&self) {
        self.all_past(self.number.get());
    }

    /// Waits until no rank can still be reading the previous contents of an operation's cells.
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

    /// Waits until the other ranks selected by `is_waited_for` have finished an operation, with [`Cells::end_long`], and all before it.
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
        // A request may be finished by a rank out of order, and without a fence.
        let fenced = self.shared || self.lane == Lane::Blocking;
        self.wait_for_members(wait, engine, fenced, finished).await
    }

    /// Waits for a condition that others signal when they finish, `fenced` if with a fence; they ring the doorbell if spinning was not enough.
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
        // SYNC POINT shm.waiters: a rank that finishes from now on sees the waiter, or the waiter sees that it has finished.
        if !fenced {
            heavy();
        }
        wait.until(engine, done).await?;
        self.waiters().fetch_sub(1, Ordering::Relaxed);
        Ok(())
    }

    /// Finishes an operation in which this rank has seen every member arrive.
    #[inline(always)]
    pub fn end_together(&self, members: &Members, number: u64) {
        match self.lane {
            Lane::Blocking => {
                // A rank that waits in this operation has finished the previous one.
                self.all_past(number - 1);
                self.finish(number);
            }
            Lane::Nonblocking => self.end(members, number),
        }
    }

    /// Finishes an operation that this rank may be the last to finish.
    #[inline(always)]
    pub fn end(&self, members: &Members, number: u64) {
        self.finish(number);
        // SYNC POINT shm.waiters: this rank executes the fence, or the waiter has executed it for this rank where the system supports that.
        light();
        if self.shared || !members.light() {
            fence(Ordering::SeqCst);
        }
        self.wake_waiters(members);
    }

    /// Finishes an operation so long that others usually wait: a fence here is cheaper than one executed by the waiters.
    pub fn end_long(&self, members: &Members, number: u64) {
        self.finish(number);
        // SYNC POINT shm.waiters
        fence(Ordering::SeqCst);
        self.wake_waiters(members);
    }

    /// Wakes the waiters; the caller has executed a fence.
    #[inline(always)]
    fn wake_waiters(&self, members: &Members) {
        if self.waiters().load(Ordering::Relaxed) > 0 {
            members.ring_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_of_few_cooperating_members_are_spaced_apart_and_others_fit_their_data() {
        let shortest = |members, flow| {
            let layout = Layout::of(Lane::Blocking, LONGEST, members, Occupancy::Oversubscribed);
            layout.rings[layout.choices[flow as usize][0]].cell
        };
        assert_eq!(shortest(FEW, Flow::CooperativeCopy), SHORT_APART);
        assert_eq!(shortest(FEW + 1, Flow::CooperativeCopy), SHORT);
        for members in [2, 60] {
            assert_eq!(shortest(members, Flow::OneWay), SHORT);
        }
    }

    #[test]
    fn the_first_operations_of_few_members_are_in_two_pages() {
        for occupancy in [Occupancy::Dedicated, Occupancy::Oversubscribed] {
            for members in 2..=FEW {
                let cell = fitting_cell(members, occupancy);
                let Layout { rings, choices } =
                    Layout::of(Lane::Blocking, cell, members, occupancy);
                let short = choices[Flow::CooperativeCopy as usize][0];
                let bytes = cells::words(members, &rings[..=short]) * WORD;
                assert!(bytes <= 3 << 12, "{members} members: {bytes} bytes");
                assert_eq!(rings[short].depth, DEPTH);
            }
        }
    }

    #[test]
    fn rings_are_as_deep_as_is_worth_their_memory() {
        for (members, occupancy, short, middling) in [
            (2, Occupancy::Dedicated, 64, 32),
            (2, Occupancy::Oversubscribed, 512, 512),
            (16, Occupancy::Oversubscribed, 512, 128),
            (60, Occupancy::Oversubscribed, 512, 32),
            (100, Occupancy::Oversubscribed, 256, 32),
            (1000, Occupancy::Oversubscribed, 64, 32),
        ] {
            let depths = [SHORT, MIDDLING].map(|cell| depth(cell, members, occupancy));
            assert_eq!(depths, [short, middling], "{members} members");
        }
    }

    /// With memory for a few communicators of the longest cells, hundreds get shorter ones.
    #[test]
    fn cells_become_shorter_before_there_are_none() {
        const ARENA: usize = 1 << 30;
        let (mut left, mut cells) = (ARENA, Vec::new());
        while let Some(rest) = {
            let cell = affordable_cell(LONGEST, 60, Occupancy::Oversubscribed, left);
            cells.push(cell);
            left.checked_sub(lens(60, cell, Occupancy::Oversubscribed).iter().sum())
        } {
            left = rest;
        }
        assert!(cells.is_sorted_by(|a, b| a >= b));
        assert_eq!((cells[0], cells[cells.len() - 1]), (LONGEST, SHORTEST));
        assert!(cells.iter().all(|cell| possible_cell(*cell) == *cell));
        assert!(cells.len() > 200, "{}", cells.len());
        // A call that needs little gets all of it.
        assert_eq!(
            affordable_cell(SHORTEST - LINE, 60, Occupancy::Oversubscribed, 0),
            SHORTEST - LINE
        );
    }
}
