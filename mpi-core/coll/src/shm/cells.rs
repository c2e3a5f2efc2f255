//! A communicator's cells (see [`mpi_base::cells`]), and waiting for room in them.
//!
//! Long data have long cells, [`DEPTH`] of each member. Short data have short ones of their own, close together,
//! but for those of few members that wait for each other, which are worth the distance;
//! and where no rank waits for all others ([`Flow::OneWay`]) there are many of those, so that the giver may run far ahead:
//! where ranks share cores each wait for room costs switches (docs/adr/0019-short-data-have-short-cells.md).
//!
//! A communicator has two sets of cells, one for each [`Lane`], so that what waits is never numbered behind what does not.
//! A rank that finds others too far behind says that it is hungry, and the one that finishes wakes it.
//! Where each rank has a core, finishing is frequent and hunger is not, so the hungry one has the fence for both ([`mpi_base::fence`]);
//! but a rank that finishes a long operation has its own, since that interrupts no rank that is copying.

use super::barrier::Kind;
use super::members::{LINE, Members};
use super::poll_delay::PollDelay;
use super::wait::Waits;
use crate::engine::Engine;
use mpi_base::atomic::{AtomicU64, Ordering, fence};
use mpi_base::cells::{self, Cells as Board, DEEPEST, Ring, Spot, Track};
use mpi_base::fence::{heavy, light};
use mpi_base::mem::Held;
use mpi_base::node::{Node, ShmOffset};
use std::cell::Cell;
use std::ops::Deref;

const WORD: usize = size_of::<u64>();

/// How many operations of long data may be under way; of short data that go one way there may be more.
pub const DEPTH: u64 = 4;

/// The longest cell.
pub const LONGEST: usize = (64 << 10) + LINE;

/// One communicator's cells have one in so many bytes of what is left, unless they are as short as these.
const SHARE: usize = 32;
const SHORTEST: usize = (1 << 10) + LINE;

/// A cell for pieces: the longer they are, the fewer lines travel that say that there is one, and the more memory it takes.
const PIECE: usize = (32 << 10) + LINE;

/// The cells of short data.
pub const SHORT: usize = LINE;

/// The cells of data that are not much longer.
pub const MIDDLING: usize = (1 << 10) + LINE;

/// How many short or middling cells of each member there are where no rank waits for all others.
///
/// Where ranks share cores they are switched in in any order, and in a row of scans a rank goes no further in one turn than the one before has come;
/// so the deeper, the fewer switches: 8 bytes of 32 ranks, 0.20 of a rank for each scan where there are 64, 0.07 where there are 256, and 0.04 where there are 512.
/// There are fewer where they would take more than this memory, but always enough.
pub fn depth(cell: usize, members: u32, kind: Kind) -> u64 {
    const MEMORY: usize = 4 << 20;
    let enough = match cell {
        SHORT => 64,
        _ => 32,
    };
    let row = (members as usize + 2) * cell;
    let halves = std::iter::successors(Some(DEEPEST), |depth| Some(depth / 2));
    let mut deep = halves.take_while(|depth| *depth > enough);
    let affordable = deep.find(|depth| *depth as usize * row <= MEMORY);
    match kind {
        Kind::Counter => affordable.unwrap_or(enough),
        Kind::Flags => enough,
    }
}

/// So many members have long cells for requests too.
pub const FEW: u32 = 4;

/// The longest cell of requests: they are rarer than calls that wait, and among many members their cells are not worth as much memory.
///
/// Of a few, four cells have room for all of 128 KiB: 64 KiB from one of two ranks to the other took 13.7 us in a single copy, and take 1.7 in cells.
fn longest_of_requests(members: u32) -> usize {
    match members {
        0..=FEW => PIECE,
        _ => (8 << 10) + LINE,
    }
}

/// Bytes in a cell unless the user wants otherwise and as far as there is memory; where ranks have cores, the more members there are, the less is worth it.
///
/// Where ranks share cores, what goes whole lets a rank go before another is switched in, and two copies of it are faster than one by the system,
/// which costs as much for looking pages up as for copying. What no rank uses is never touched.
pub fn fitting_cell(members: u32, kind: Kind) -> usize {
    match (members, kind) {
        (_, Kind::Counter) => LONGEST,
        (0..=4, Kind::Flags) => PIECE,
        (5..=16, Kind::Flags) => (4 << 10) + LINE,
        (_, Kind::Flags) => (1 << 10) + LINE,
    }
}

/// The longest cell up to this one whose cells are not too much of the memory that is left: so the more communicators there are, the shorter are their cells,
/// and many have some before one has none.
pub fn affordable_cell(longest: usize, members: u32, kind: Kind, left: usize) -> usize {
    let needs = |cell: usize| -> usize { lens(members, cell, kind).iter().sum() };
    let halves = std::iter::successors(Some(longest), |cell| Some((cell - LINE) / 2 + LINE));
    let mut worthwhile = halves.take_while(|cell| *cell >= SHORTEST);
    let affordable = worthwhile.find(|cell| needs(*cell) <= left / SHARE);
    affordable.unwrap_or(SHORTEST.min(longest))
}

/// The bytes that the cells of each lane need.
pub fn lens(members: u32, cell: usize, kind: Kind) -> [usize; 2] {
    [Lane::Blocking, Lane::Nonblocking].map(|lane| Cells::len(members, cell, lane, kind))
}

/// The cells of a lane where those of calls that wait are so long.
pub fn cell_of(lane: Lane, cell: usize, members: u32) -> usize {
    match lane {
        Lane::Blocking => cell,
        Lane::Nonblocking => cell.min(longest_of_requests(members)),
    }
}

/// The cell that is made of a wish: whole lines, one at least.
pub fn possible_cell(wish: usize) -> usize {
    wish.clamp(LINE, LONGEST).next_multiple_of(LINE)
}

/// Which rank waits for which in an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// No rank ends before all have come.
    CooperativeCopy,
    /// A rank that has given goes on.
    OneWay,
}

/// The cells of a lane.
struct Layout {
    rings: Vec<Ring>,
    /// By [`Flow`], which of the rings data lie in, from the shortest cells to the longest.
    choices: [[usize; 3]; 2],
}

impl Layout {
    /// That of a lane, where the cells of calls that wait are so long.
    fn of(lane: Lane, cell: usize, members: u32, kind: Kind) -> Layout {
        let longest = cell_of(lane, cell, members);
        // Requests may end in any order, but the rank that works for all in one must know that no rank reads the result of one before.
        let is_deep = lane == Lane::Blocking && longest > MIDDLING;
        let mut rings = Vec::new();
        let choices = [Flow::CooperativeCopy, Flow::OneWay].map(|flow| {
            let deep = |cell| match flow {
                Flow::OneWay if is_deep => depth(cell, members, kind),
                _ => DEPTH,
            };
            let of = [
                (SHORT, deep(SHORT)),
                (MIDDLING, deep(MIDDLING)),
                (longest, DEPTH),
            ];
            // What one member of few shows is read ahead of, into what the next one is writing, so theirs lie apart:
            // 1 KiB of two ranks, allreduce 0.178 and 0.168 us, allgather 0.179 and 0.171.
            // Of 60 ranks, which share cores, 8 bytes side by side: allgather 77 and 100 us, alltoall 79 and 125.
            let apart = flow == Flow::CooperativeCopy && members <= FEW;
            of.map(|(length, depth)| {
                let cell = match apart {
                    true => longest,
                    false => length.min(longest),
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

/// A ring that there is, and how many bytes a member and a result have there.
#[derive(Clone, Copy)]
struct Choice {
    track: Track,
    bytes: usize,
    bytes_of_result: usize,
}

/// The first of these rings in which something has room, or the last: no caller asks for more than fits that.
#[inline(always)]
fn first(choices: &[Choice; 3], has_room: impl Fn(&Choice) -> bool) -> &Track {
    let [short, middling, long] = choices;
    match () {
        () if has_room(short) => &short.track,
        () if has_room(middling) => &middling.track,
        () => &long.track,
    }
}

/// Whose cells they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Calls that wait: a rank that begins one has finished all before it.
    Blocking,
    /// Requests: several may be under way, and end in any order.
    Nonblocking,
}

pub struct Cells {
    board: Board<Held<[AtomicU64]>>,
    lane: Lane,
    /// By [`Flow`].
    choices: [[Choice; 3]; 2],
    /// The last operation that has begun here.
    number: Cell<u64>,
    patience: PollDelay,
    /// Whether hunger is frequent, as it is where ranks share cores: then the rank that finishes has the fence, else the hungry one.
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
    /// The bytes that a lane's cells for so many members need, where those of calls that wait are so long.
    pub fn len(members: u32, cell: usize, lane: Lane, kind: Kind) -> usize {
        cells::words(members, &Layout::of(lane, cell, members, kind).rings) * WORD
    }

    /// The cells at `place`, if all of them are inside the node's memory.
    pub fn at(
        node: &Node,
        place: ShmOffset,
        cell: usize,
        members: &Members,
        lane: Lane,
        kind: Kind,
    ) -> Option<Cells> {
        if possible_cell(cell) != cell {
            return None;
        }
        let Layout { rings, choices } = Layout::of(lane, cell, members.count(), kind);
        let words = node.hold_all(place, cells::words(members.count(), &rings))?;
        let tracks = cells::tracks(members.count(), &rings);
        Some(Cells {
            board: Board::new(words, members.me(), members.count(), &rings)?,
            lane,
            choices: choices.map(|rings| {
                rings.map(|ring| Choice {
                    track: tracks[ring],
                    bytes: tracks[ring].capacity(),
                    bytes_of_result: tracks[ring].capacity_of_result(),
                })
            }),
            number: Cell::new(0),
            patience: PollDelay::new(lane == Lane::Blocking && kind == Kind::Flags),
            shared: kind == Kind::Counter,
        })
    }

    #[inline(always)]
    pub fn patience(&self) -> &PollDelay {
        &self.patience
    }

    pub fn lane(&self) -> Lane {
        self.lane
    }

    /// How many bytes a member can show.
    pub fn capacity(&self) -> usize {
        let [.., long] = self.choices[Flow::CooperativeCopy as usize];
        long.bytes
    }

    /// Where the data of an operation lie, of which no member shows more than so many bytes, nor is the result longer.
    #[inline(always)]
    pub fn spot(&self, number: u64, flow: Flow, bytes: usize) -> Spot<'_> {
        let choices = &self.choices[flow as usize];
        first(choices, |ring| bytes <= ring.bytes).spot(number)
    }

    /// The same operation, whose result is so long.
    #[inline(always)]
    pub fn with_result<'a>(&'a self, spot: Spot<'a>, flow: Flow, bytes: usize) -> Spot<'a> {
        let choices = &self.choices[flow as usize];
        spot.with_result(first(choices, |ring| bytes <= ring.bytes_of_result))
    }

    /// Where they lie if they need long cells and have no result.
    pub fn long_spot(&self, number: u64) -> Spot<'_> {
        let [short, .., long] = &self.choices[Flow::CooperativeCopy as usize];
        long.track.spot(number).with_result(&short.track)
    }

    /// The bytes of a piece of data that are longer than a cell: elements of any predefined type end where it does.
    pub fn piece(&self) -> usize {
        self.capacity() / LINE * LINE
    }

    /// Begins as many operations, and gives the number of the first.
    #[inline]
    pub fn begin(&self, how_many: u64) -> u64 {
        let last = self.number.get();
        self.number.set(last + how_many);
        last + 1
    }

    /// The number that the next operation will get.
    pub fn next(&self) -> u64 {
        self.number.get() + 1
    }

    /// Whether no operation has begun here; then no member has written anything, for they begin the same ones.
    pub fn are_untouched(&self) -> bool {
        self.number.get() == 0
    }

    /// Every member has come to this point of the program, where it waits: so all have finished what they waited for before.
    #[inline]
    pub fn all_here(&self) {
        self.all_past(self.number.get());
    }

    /// Waits until no rank can still be reading what the cells of an operation held before.
    #[inline]
    pub async fn make_room(&self, wait: impl Waits, engine: &Engine, spot: Spot<'_>) {
        if !self.has_room(spot) {
            let has_room = || self.has_room(spot);
            self.wait_for_members(wait, engine, self.shared, has_room)
                .await;
        }
    }

    /// Waits until those of the others for which `is_waited_for` says so have finished an operation, by [`Cells::end_long`], and all before it.
    #[inline]
    pub async fn await_end(
        &self,
        wait: impl Waits,
        engine: &Engine,
        members: &Members,
        number: u64,
        is_waited_for: impl Fn(u32) -> bool,
    ) {
        let others = || members.others().filter(|rank| is_waited_for(*rank));
        let finished = || others().all(|rank| self.has_finished(rank, number));
        // Requests may be finished by one that has no fence, out of turn.
        let fenced = self.shared || self.lane == Lane::Blocking;
        self.wait_for_members(wait, engine, fenced, finished).await;
    }

    /// Waits for something that others say when they finish, `fenced` if they do so with a fence; they ring when that takes longer than a moment.
    async fn wait_for_members(
        &self,
        wait: impl Waits,
        engine: &Engine,
        fenced: bool,
        mut done: impl FnMut() -> bool,
    ) {
        if wait.briefly(engine, &mut done) {
            return;
        }
        self.hungry().fetch_add(1, Ordering::SeqCst);
        // SYNC POINT shm.hungry: a rank that finishes from now on sees that one waits, or we see that it has finished.
        if !fenced {
            heavy();
        }
        wait.until(engine, done).await;
        self.hungry().fetch_sub(1, Ordering::Relaxed);
    }

    /// This rank has finished an operation in which it heard of every member.
    #[inline(always)]
    pub fn end_together(&self, members: &Members, number: u64) {
        match self.lane {
            Lane::Blocking => {
                // A rank that waits in this one has finished the one before.
                self.all_past(number - 1);
                self.finish(number);
            }
            Lane::Nonblocking => self.end(members, number),
        }
    }

    /// This rank has finished an operation that it may be the last to finish.
    #[inline(always)]
    pub fn end(&self, members: &Members, number: u64) {
        self.finish(number);
        // SYNC POINT shm.hungry: the fence is here, or the hungry rank has executed it for us, if the system lets it.
        light();
        if self.shared || !members.light() {
            fence(Ordering::SeqCst);
        }
        self.feed(members);
    }

    /// The same of an operation that takes so long that others are hungry as a rule: a fence here is cheaper than one that they have executed.
    pub fn end_long(&self, members: &Members, number: u64) {
        self.finish(number);
        // SYNC POINT shm.hungry
        fence(Ordering::SeqCst);
        self.feed(members);
    }

    /// Wakes the hungry, after a fence.
    #[inline(always)]
    fn feed(&self, members: &Members) {
        if self.hungry().load(Ordering::Relaxed) > 0 {
            members.ring_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_of_few_who_wait_for_each_other_lie_apart_and_all_others_are_as_long_as_their_data() {
        let shortest = |members, flow| {
            let layout = Layout::of(Lane::Blocking, LONGEST, members, Kind::Counter);
            layout.rings[layout.choices[flow as usize][0]].cell
        };
        assert_eq!(shortest(FEW, Flow::CooperativeCopy), LONGEST);
        assert_eq!(shortest(FEW + 1, Flow::CooperativeCopy), SHORT);
        for members in [2, 60] {
            assert_eq!(shortest(members, Flow::OneWay), SHORT);
        }
    }

    #[test]
    fn rings_are_as_deep_as_is_worth_their_memory() {
        for (members, kind, short, middling) in [
            (2, Kind::Flags, 64, 32),
            (2, Kind::Counter, 512, 512),
            (16, Kind::Counter, 512, 128),
            (60, Kind::Counter, 512, 32),
            (100, Kind::Counter, 256, 32),
            (1000, Kind::Counter, 64, 32),
        ] {
            let depths = [SHORT, MIDDLING].map(|cell| depth(cell, members, kind));
            assert_eq!(depths, [short, middling], "{members} members");
        }
    }

    /// Of memory that has room for a few of the longest, hundreds of communicators get something.
    #[test]
    fn cells_become_shorter_before_there_are_none() {
        const ARENA: usize = 1 << 30;
        let (mut left, mut cells) = (ARENA, Vec::new());
        while let Some(rest) = {
            let cell = affordable_cell(LONGEST, 60, Kind::Counter, left);
            cells.push(cell);
            left.checked_sub(lens(60, cell, Kind::Counter).iter().sum())
        } {
            left = rest;
        }
        assert!(cells.is_sorted_by(|a, b| a >= b));
        assert_eq!((cells[0], cells[cells.len() - 1]), (LONGEST, SHORTEST));
        assert!(cells.iter().all(|cell| possible_cell(*cell) == *cell));
        assert!(cells.len() > 200, "{}", cells.len());
        // A call that needs little gets all of it.
        assert_eq!(
            affordable_cell(SHORTEST - LINE, 60, Kind::Counter, 0),
            SHORTEST - LINE
        );
    }
}
