//! Cells: where each of a few processes shows the others a few bytes, operation after operation.
//!
//! The cells of one length are a [`Ring`]: each member has as many of them as the ring is deep, used in turn by operations that all members number alike, from 1 on.
//! There may be several rings, deep ones of short cells and shallow ones of long cells;
//! in which one an operation's data lie follows from what all members know alike, so they find the same [`Spot`].
//! A cell is one run of words; the first holds the number of the operation whose data follow, and is written last.
//! So a message of seven words or less is one cache line, written once and read once by each reader.
//!
//! Protocol of operation k in a ring of depth d:
//! 1. a member that has something to show writes its cell k mod d, then the number ([`Cells::show`]);
//!    before that it makes sure that all members have finished operation k - d, and so whatever the cell held before ([`Cells::has_room`]);
//! 2. whoever needs the data waits for the number and reads ([`Cells::seen`], [`Cells::read`]);
//! 3. when a member has finished it says so in a line of its own ([`Cells::finish`]): the last number up to which it has finished everything.
//!
//! There is one place more than there are members: the result of an operation that one of them works out for all.
//! Who that is, a count of arrivals in front of each of its cells tells ([`Cells::arrive`]); the last to arrive sets it back before anybody goes on.
//! It may lie in another ring than what the members show, as it may be longer; the operation has room where both have.
//!
//! SYNC POINT `cells.shown`: the number (Release) after the data, read (Acquire) before them.
//! SYNC POINT `cells.counted`: what is counted (Release) after what was done for it, looked at (Acquire) by who waits for that.
//! SYNC POINT `cells.finished`: a member's word (Release) after all that it read, looked at (Acquire) before a cell is written again.
//! SYNC POINT `cells.arrivals`: each arrival (AcqRel) after what its member shows; who completes the count, or sees it complete, collects all.
//!
//! The cells of one operation lie side by side, so that who looks at all of them looks at few pages: after a switch each first look at one costs.
//!
//! A line that another core has read costs a round trip before it can be written.
//! So who has shown something asks for the line of its next number at once ([`Cells::fetch_next`]), which nobody looks at yet.
//! And who waits reads the line of the number again and again, so each of its writers' pauses costs a round trip too:
//! of longer data that line is written last, with the number ([`lay`]).

mod data;

use crate::atomic::{AtomicU64, Ordering, prefetch_for_read, prefetch_for_write};
pub use data::lay;
use std::cell::Cell;
use std::ops::{Deref, Range};

/// The deepest ring: so many operations may be under way, and one word has a bit for each.
pub const DEEPEST: u64 = 64;

/// Processors fetch lines in pairs, so what different members write lies this far apart.
pub const LINE: usize = 128;

const WORD: usize = size_of::<u64>();

/// What travels between cores at once.
const FETCHED: usize = 64;

/// The bytes of data that travel with their number.
const FIRST: usize = FETCHED - WORD;

/// Words in a line.
const STEP: usize = LINE / WORD;

/// Cells of one length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ring {
    /// Bytes of a cell: a multiple of [`LINE`] and not zero.
    pub cell: usize,
    /// How many operations may be under way before their cells are used again: a power of two, [`DEEPEST`] at most.
    pub depth: u64,
}

impl Ring {
    /// The words of the cells of one operation: the members', and the result's with its arrivals in front.
    fn row(&self, members: u32) -> usize {
        (members as usize + 1) * self.cell / WORD + STEP
    }

    fn words(&self, members: u32) -> usize {
        self.depth as usize * self.row(members)
    }

    fn is_possible(&self) -> bool {
        let length = self.cell > 0 && self.cell.is_multiple_of(LINE);
        length && self.depth.is_power_of_two() && self.depth <= DEEPEST
    }
}

/// Whose cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Of(u32),
    Result,
}

impl From<u32> for Place {
    #[inline(always)]
    fn from(member: u32) -> Place {
        Place::Of(member)
    }
}

/// The words of a result's cell, where a member's has so many: the arrivals have a line more, of which they need a word.
const fn of_result(cell: usize) -> usize {
    cell + STEP - 1
}

/// A ring's place in memory, in words.
#[derive(Clone, Copy, Debug)]
pub struct Track {
    first: usize,
    /// From one operation's cells to the next.
    row: usize,
    cell: usize,
    depth: u64,
}

impl Track {
    /// How many bytes a member can show.
    pub fn capacity(&self) -> usize {
        (self.cell - 1) * WORD
    }

    /// How many bytes the result can have: some more.
    pub fn capacity_of_result(&self) -> usize {
        (of_result(self.cell) - 1) * WORD
    }

    /// Where the cells of an operation begin.
    #[inline(always)]
    fn row_of(&self, number: u64) -> usize {
        self.first + (number & (self.depth - 1)) as usize * self.row
    }

    /// Where the data of an operation lie that uses this ring.
    #[inline(always)]
    pub fn spot(&self, number: u64) -> Spot {
        let first = self.row_of(number);
        Spot {
            number,
            first,
            cell: self.cell,
            first_of_result: first,
            cell_of_result: self.cell,
            depth: self.depth,
            next: self.row_of(number + 1),
        }
    }
}

/// Where the data of an operation lie, in words.
#[derive(Clone, Copy, Debug)]
pub struct Spot {
    number: u64,
    /// The first of the members' cells, and the words of each.
    first: usize,
    cell: usize,
    /// The same where the result lies.
    first_of_result: usize,
    cell_of_result: usize,
    /// The cells are free when all have finished the operation so far before.
    depth: u64,
    /// Where the cells of the next operation in the same ring begin.
    next: usize,
}

impl Spot {
    /// Which operation it is.
    #[inline(always)]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The same operation, whose result lies in this ring.
    #[inline(always)]
    pub fn with_result(self, track: &Track) -> Spot {
        let of_result = track.spot(self.number);
        Spot {
            first_of_result: of_result.first,
            cell_of_result: of_result.cell,
            depth: self.depth.min(of_result.depth),
            ..self
        }
    }
}

/// Where these rings lie in the memory of so many members' cells.
pub fn tracks(members: u32, rings: &[Ring]) -> Vec<Track> {
    let mut end = before_rings(members);
    let track = |ring: &Ring| {
        let first = end;
        end += ring.words(members);
        Track {
            first,
            row: ring.row(members),
            cell: ring.cell / WORD,
            depth: ring.depth,
        }
    };
    rings.iter().map(track).collect()
}

/// One member's view of the cells in `M`, which are zero at first.
pub struct Cells<M> {
    /// A line for the hungry, one for each member's word, and the rings.
    words: M,
    me: u32,
    members: u32,
    /// This member has finished all operations up to this one.
    finished: Cell<u64>,
    /// Bit i: and the one i + 1 behind it.
    beyond: Cell<u64>,
    /// All members are known to have finished this one and those before.
    safe: Cell<u64>,
}

/// The words that these rings need for so many members.
pub fn words(members: u32, rings: &[Ring]) -> usize {
    let of_rings: usize = rings.iter().map(|ring| ring.words(members)).sum();
    before_rings(members) + of_rings
}

fn before_rings(members: u32) -> usize {
    (1 + members as usize) * STEP
}

impl<M: Deref<Target = [AtomicU64]>> Cells<M> {
    /// The cells in memory of [`words`] words, where [`tracks`] tells.
    pub fn new(memory: M, me: u32, members: u32, rings: &[Ring]) -> Option<Cells<M>> {
        let fits = me < members
            && rings.iter().all(Ring::is_possible)
            && memory.len() >= words(members, rings);
        fits.then_some(Cells {
            words: memory,
            me,
            members,
            finished: Cell::new(0),
            beyond: Cell::new(0),
            safe: Cell::new(0),
        })
    }

    /// How many processes have a cell each; fixed when they were laid out.
    pub fn members(&self) -> u32 {
        self.members
    }

    /// How many members wait until others have finished; not part of the protocol above, and nobody here touches it.
    pub fn hungry(&self) -> &AtomicU64 {
        &self.words[0]
    }

    fn word_of(&self, member: u32) -> &AtomicU64 {
        &self.words[(1 + member as usize) * STEP]
    }

    /// Where the arrivals are: behind the members' cells, and the result's cell is behind them.
    #[inline(always)]
    fn arrivals_at(&self, spot: Spot) -> usize {
        spot.first_of_result + self.members as usize * spot.cell_of_result
    }

    #[inline(always)]
    fn arrivals(&self, spot: Spot) -> &AtomicU64 {
        &self.words[self.arrivals_at(spot)]
    }

    /// Where a place's cell of an operation begins, and how many words it has.
    #[inline(always)]
    fn cell(&self, place: impl Into<Place>, spot: Spot) -> (usize, usize) {
        match place.into() {
            Place::Of(member) => (spot.first + member as usize * spot.cell, spot.cell),
            Place::Result => (self.arrivals_at(spot) + 1, of_result(spot.cell_of_result)),
        }
    }

    /// The number in it.
    #[inline(always)]
    fn flag(&self, place: impl Into<Place>, spot: Spot) -> &AtomicU64 {
        &self.words[self.cell(place, spot).0]
    }

    /// The words of its data.
    #[inline(always)]
    fn data(&self, place: impl Into<Place>, spot: Spot) -> &[AtomicU64] {
        let (start, len) = self.cell(place, spot);
        &self.words[start + 1..start + len]
    }

    /// Whether nobody can still be reading what the cells of an operation held before.
    #[inline(always)]
    pub fn has_room(&self, spot: Spot) -> bool {
        self.safe.get() + spot.depth >= spot.number || self.look_round() + spot.depth >= spot.number
    }

    /// Whether all members have finished an operation and those before.
    #[inline(always)]
    pub fn have_finished(&self, number: u64) -> bool {
        self.safe.get() >= number || self.look_round() >= number
    }

    /// What is known without a look: all members have finished this operation and those before.
    #[inline(always)]
    pub fn all_past(&self, number: u64) {
        self.safe.set(self.safe.get().max(number));
    }

    /// Looks how far the slowest member is.
    #[cold]
    fn look_round(&self) -> u64 {
        // SYNC POINT cells.finished
        let finished = |member| self.word_of(member).load(Ordering::Acquire);
        let slowest = (0..self.members).map(finished).min().unwrap_or(0);
        self.all_past(slowest);
        slowest
    }

    /// Whether a member has finished an operation and all before it.
    #[inline(always)]
    pub fn has_finished(&self, member: u32, number: u64) -> bool {
        // SYNC POINT cells.finished
        self.word_of(member).load(Ordering::Acquire) >= number
    }

    /// Shows data in an operation at a place that this member has to fill; there is room for them.
    #[inline(always)]
    pub fn show(&self, place: impl Into<Place> + Copy, spot: Spot, data: &[u8]) {
        self.fill(place, spot, 0, data);
        self.publish(place, spot);
    }

    /// Writes data from byte `at` on into the cell of an operation, for which there is room.
    #[inline(always)]
    pub fn fill(&self, place: impl Into<Place> + Copy, spot: Spot, at: usize, data: &[u8]) {
        data::write(self.data(place, spot), at, data);
    }

    /// Lets `with` write so many bytes into the cell of an operation, for which there is room.
    #[inline(always)]
    pub fn compose<T>(
        &self,
        place: impl Into<Place> + Copy,
        spot: Spot,
        bytes: Range<usize>,
        with: impl FnOnce(&mut [u8]) -> T,
    ) -> T {
        data::change(self.data(place, spot), bytes.start, bytes.len(), with)
    }

    /// Shows what the cell of an operation has been filled with.
    #[inline(always)]
    pub fn publish(&self, place: impl Into<Place> + Copy, spot: Spot) {
        // SYNC POINT cells.shown
        self.flag(place, spot).store(spot.number, Ordering::Release);
    }

    /// Counts in an operation, in place of data: from zero, which is written before it is published, and then up.
    #[inline(always)]
    pub fn count_to(&self, spot: Spot, count: u64) {
        // SYNC POINT cells.counted
        self.data(self.me, spot)[0].store(count, Ordering::Release);
    }

    /// What a member has counted to; none before it shows that it counts.
    #[inline(always)]
    pub fn counted(&self, place: impl Into<Place> + Copy, spot: Spot) -> Option<u64> {
        // SYNC POINT cells.counted
        let count = || self.data(place, spot)[0].load(Ordering::Acquire);
        self.seen(place, spot).then(count)
    }

    /// Asks for the line of the next number that this member will write in the same ring.
    #[inline(always)]
    pub fn fetch_next(&self, spot: Spot) {
        let flag = &self.words[spot.next + self.me as usize * spot.cell];
        prefetch_for_write(std::ptr::from_ref(flag).cast());
    }

    /// Asks for the first line of what every member shows in an operation, so that they come together and not one after another.
    pub fn fetch_all(&self, spot: Spot) {
        for member in 0..self.members {
            prefetch_for_read(std::ptr::from_ref(self.flag(member, spot)).cast());
        }
    }

    /// Whether a place shows its data of an operation.
    #[inline(always)]
    pub fn seen(&self, place: impl Into<Place> + Copy, spot: Spot) -> bool {
        self.watch(place, spot)()
    }

    /// The same for one who looks again and again.
    #[inline(always)]
    pub fn watch(&self, place: impl Into<Place>, spot: Spot) -> impl Fn() -> bool {
        let flag = self.flag(place, spot);
        // SYNC POINT cells.shown
        move || flag.load(Ordering::Acquire) >= spot.number
    }

    /// Reads the data from byte `at` on; they have been seen.
    #[inline(always)]
    pub fn read(&self, place: impl Into<Place> + Copy, spot: Spot, at: usize, out: &mut [u8]) {
        data::read(self.data(place, spot), at, out);
    }

    /// Lets `with` read some of the data where they lie; they have been seen.
    #[inline(always)]
    pub fn inspect<T>(
        &self,
        place: impl Into<Place> + Copy,
        spot: Spot,
        bytes: Range<usize>,
        with: impl FnOnce(&[u8]) -> T,
    ) -> T {
        data::show(self.data(place, spot), bytes.start, bytes.len(), with)
    }

    /// Copies data that a member shows to byte `to` of the result, by the member that will show it.
    pub fn pass_on(&self, spot: Spot, from: u32, bytes: Range<usize>, to: usize) {
        self.inspect(from, spot, bytes, |data| {
            self.fill(Place::Result, spot, to, data)
        });
    }

    /// This member has come to an operation, after it has shown what it has to; true for the last to come.
    #[inline(always)]
    pub fn arrive(&self, spot: Spot) -> bool {
        // SYNC POINT cells.arrivals
        let before = self.arrivals(spot).fetch_add(1, Ordering::AcqRel);
        before + 1 == u64::from(self.members)
    }

    /// Whether all have come to an operation.
    #[inline(always)]
    pub fn all_arrived(&self, spot: Spot) -> bool {
        // SYNC POINT cells.arrivals
        self.arrivals(spot).load(Ordering::Acquire) == u64::from(self.members)
    }

    /// Sets the arrivals of an operation back, by the one member that went on because all had come;
    /// what it shows, or that it has finished, tells the others.
    #[inline(always)]
    pub fn forget_arrivals(&self, spot: Spot) {
        self.arrivals(spot).store(0, Ordering::Relaxed);
    }

    /// This member has finished an operation.
    #[inline(always)]
    pub fn finish(&self, number: u64) {
        if number == self.finished.get() + 1 && self.beyond.get() == 0 {
            self.finished.set(number);
        } else {
            self.finish_out_of_turn(number);
        }
        // SYNC POINT cells.finished
        self.word_of(self.me)
            .store(self.finished.get(), Ordering::Release);
    }

    /// The same while others are under way that began before, or were finished before it.
    ///
    /// None can be more than [`DEEPEST`] ahead of one that is not finished, so a word has bits enough.
    #[cold]
    fn finish_out_of_turn(&self, number: u64) {
        let finished = self.finished.get();
        let bit = number
            .checked_sub(finished + 1)
            .and_then(|behind| 1u64.checked_shl(behind as u32));
        let ended = self.beyond.get() | bit.unwrap_or(0);
        let row = ended.trailing_ones();
        self.finished.set(finished + u64::from(row));
        self.beyond.set(ended.checked_shr(row).unwrap_or(0));
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const SHORT: Ring = Ring {
        cell: LINE,
        depth: 8,
    };
    const LONG: Ring = Ring {
        cell: 2 * LINE,
        depth: 4,
    };

    fn board(members: u32, rings: &[Ring]) -> Vec<AtomicU64> {
        (0..words(members, rings))
            .map(|_| AtomicU64::new(0))
            .collect()
    }

    #[test]
    fn what_one_shows_others_read_from_any_byte_on() {
        let memory = board(2, &[LONG]);
        let member = |me| Cells::new(&memory[..], me, 2, &[LONG]).unwrap();
        let (a, b) = (member(0), member(1));
        let data: Vec<u8> = (1..=21).collect();
        let [first, second] = [1, 2].map(|number| tracks(2, &[LONG])[0].spot(number));
        assert!(!b.seen(0, first));
        a.show(0, first, &data);
        assert!(b.seen(0, first) && !b.seen(0, second) && !b.seen(1, first));
        for at in 0..data.len() {
            let mut read = vec![0; data.len() - at];
            b.read(0, first, at, &mut read);
            assert_eq!(read, data[at..]);
            b.inspect(0, first, at..data.len(), |shown| {
                assert_eq!(shown, &data[at..]);
            });
        }
    }

    /// Whether they fit what travels with the number or not, and nothing behind them is touched.
    #[test]
    fn data_of_every_length_are_shown_as_they_were() {
        let data: Vec<u8> = (0..200).map(|i| i as u8 | 1).collect();
        for len in 0..data.len() {
            let memory = board(2, &[LONG]);
            let member = |me| Cells::new(&memory[..], me, 2, &[LONG]).unwrap();
            let (a, b) = (member(0), member(1));
            let spot = tracks(2, &[LONG])[0].spot(1);
            a.show(0, spot, &data[..len]);
            let mut read = vec![7; data.len()];
            b.read(0, spot, 0, &mut read);
            assert_eq!(read[..len], data[..len], "{len} bytes");
            assert!(read[len..].iter().all(|byte| *byte == 0), "{len} bytes");
        }
    }

    #[test]
    fn a_cell_is_filled_in_parts_and_shown_at_once() {
        let memory = board(2, &[LONG]);
        let member = |me| Cells::new(&memory[..], me, 2, &[LONG]).unwrap();
        let (a, b) = (member(0), member(1));
        let spot = tracks(2, &[LONG])[0].spot(1);
        a.fill(0, spot, 16, &[7, 8, 9]);
        a.compose(0, spot, 0..16, |room| room.fill(1));
        assert!(!b.seen(0, spot));
        a.publish(0, spot);
        assert!(b.seen(0, spot));
        let mut read = [0; 19];
        b.read(0, spot, 0, &mut read);
        assert_eq!(read[..16], [1; 16]);
        assert_eq!(read[16..], [7, 8, 9]);
    }

    #[test]
    fn cells_are_used_again_when_all_have_finished_everything_before() {
        let rings = [SHORT, LONG];
        let memory = board(2, &rings);
        let member = |me| Cells::new(&memory[..], me, 2, &rings).unwrap();
        let (a, b) = (member(0), member(1));
        let tracks = tracks(2, &rings);
        for (track, Ring { depth, .. }) in tracks.iter().zip(rings) {
            let has_room = |number| a.has_room(track.spot(number));
            assert!(has_room(depth) && !has_room(depth + 1));
        }
        // A result that is longer than what the members show has less room.
        assert!(!a.has_room(tracks[0].spot(LONG.depth + 1).with_result(&tracks[1])));
        // Out of turn: what began first is finished last.
        for number in [3, 2, 1] {
            assert!(!a.has_room(tracks[1].spot(LONG.depth + number)));
            a.finish(number);
            b.finish(number);
        }
        for (track, Ring { depth, .. }) in tracks.iter().zip(rings) {
            let has_room = |number| a.has_room(track.spot(number));
            assert!(has_room(depth + 3) && !has_room(depth + 4));
        }
        assert!(b.has_finished(0, 3) && !b.has_finished(0, 4));
    }

    /// As many as may be under way, in each ring and at each place, have cells of their own, of which all bytes can be written.
    #[test]
    fn no_two_cells_overlap() {
        for members in 1..4 {
            let rings = [SHORT, LONG];
            let memory = board(members, &rings);
            let cells = Cells::new(&memory[..], 0, members, &rings).unwrap();
            let mut all = Vec::new();
            for (track, ring) in tracks(members, &rings).iter().zip(rings) {
                assert_eq!(track.capacity(), ring.cell - WORD);
                assert!(track.capacity_of_result() > ring.cell);
                for number in 1..=ring.depth {
                    let spot = track.spot(number);
                    let of_members = |member| (Place::Of(member), spot, track.capacity());
                    all.extend((0..members).map(of_members));
                    all.push((Place::Result, spot, track.capacity_of_result()));
                }
            }
            for (i, (place, spot, capacity)) in all.iter().enumerate() {
                cells.fill(*place, *spot, 0, &vec![i as u8 + 1; *capacity]);
                cells.publish(*place, *spot);
                cells.arrive(*spot);
                cells.finish(spot.number());
            }
            for (i, (place, spot, capacity)) in all.iter().enumerate() {
                cells.inspect(*place, *spot, 0..*capacity, |data| {
                    assert!(data.iter().all(|byte| *byte == i as u8 + 1), "{i}");
                });
            }
        }
    }

    #[test]
    fn the_last_to_arrive_is_told_so_and_sets_the_count_back() {
        let memory = board(3, &[SHORT]);
        let member = |me| Cells::new(&memory[..], me, 3, &[SHORT]).unwrap();
        let ranks = [member(0), member(1), member(2)];
        for number in 1..=3 * SHORT.depth {
            let spot = tracks(3, &[SHORT])[0].spot(number);
            let last = (number % 3) as usize;
            for (i, rank) in ranks.iter().enumerate().filter(|(i, _)| *i != last) {
                assert!(!rank.arrive(spot), "{i}");
                assert!(!rank.all_arrived(spot));
            }
            assert!(ranks[last].arrive(spot));
            assert!(ranks[0].all_arrived(spot));
            ranks[last].forget_arrivals(spot);
        }
    }

    /// An operation that is as far ahead as the deepest ring allows may be finished before the first one.
    #[test]
    fn whatever_may_be_under_way_may_end_in_any_order() {
        let deep = Ring {
            depth: DEEPEST,
            ..SHORT
        };
        let memory = board(1, &[deep]);
        let cells = Cells::new(&memory[..], 0, 1, &[deep]).unwrap();
        assert!(cells.has_room(tracks(1, &[deep])[0].spot(DEEPEST)));
        for number in (1..=DEEPEST).rev() {
            assert!(!cells.has_finished(0, 1));
            cells.finish(number);
        }
        assert!(cells.has_finished(0, DEEPEST));
    }

    #[test]
    fn memory_that_is_too_small_is_refused() {
        let rings = [SHORT, LONG];
        let memory = board(2, &rings);
        let refused = |memory, me, rings: &[Ring]| Cells::new(memory, me, 2, rings).is_none();
        assert!(!refused(&memory[..], 0, &rings));
        assert!(refused(&memory[1..], 0, &rings));
        assert!(refused(&memory[..], 2, &rings));
        for depth in [0, 3, 2 * DEEPEST] {
            assert!(refused(&memory[..], 0, &[Ring { depth, ..SHORT }]));
        }
        for cell in [0, LINE - 8] {
            assert!(refused(&memory[..], 0, &[Ring { cell, ..SHORT }]));
        }
    }
}
