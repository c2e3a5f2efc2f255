//! Cells: where each of a few processes shows the others a few bytes, operation after operation.
//!
//! Every member has [`DEPTH`] cells, used in turn by operations that all members number alike, from 1 on.
//! A cell is one run of words; the first holds the number of the operation whose data follow, and is written last.
//! So a message of seven words or less is one cache line, written once and read once by each reader.
//!
//! Protocol of operation k:
//! 1. a member that has something to show writes its cell k mod [`DEPTH`], then the number ([`Cells::show`]);
//!    before that it makes sure that all members have finished operation k - [`DEPTH`], whose data the cell still holds ([`Cells::has_room`]);
//! 2. whoever needs the data waits for the number and reads ([`Cells::seen`], [`Cells::read`]);
//! 3. when a member has finished it says so in a line of its own ([`Cells::finish`]): the last number up to which it has finished everything.
//!
//! There is one place more than there are members: the result of an operation that one of them works out for all.
//! Who that is, a count of arrivals beside each of its cells tells ([`Cells::arrive`]); the last to arrive sets it back before anybody goes on.
//!
//! SYNC POINT `cells.shown`: the number (Release) after the data, read (Acquire) before them.
//! SYNC POINT `cells.counted`: what is counted (Release) after what was done for it, looked at (Acquire) by who waits for that.
//! SYNC POINT `cells.finished`: a member's word (Release) after all that it read, looked at (Acquire) before a cell is written again.
//! SYNC POINT `cells.arrivals`: each arrival (AcqRel) after what its member shows; who completes the count, or sees it complete, collects all.
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

/// How many operations may be under way before their cells are used again.
pub const DEPTH: u64 = if cfg!(loom) { 1 } else { 4 };

/// Processors fetch lines in pairs, so what different members write lies this far apart.
pub const LINE: usize = 128;

const WORD: usize = size_of::<u64>();

/// What travels between cores at once.
const FETCHED: usize = 64;

/// The bytes of data that travel with their number.
const FIRST: usize = FETCHED - WORD;

/// Words in a line.
const STEP: usize = LINE / WORD;

/// One member's view of the cells in `M`, which are zero at first.
pub struct Cells<M> {
    /// A line for the hungry, one for each member's word, one for each cell's arrivals, and the cells with those of the result.
    words: M,
    me: u32,
    members: u32,
    /// The first word of the first cell, and how many words a cell has.
    first: usize,
    cell: usize,
    /// This member has finished all operations up to this one.
    finished: Cell<u64>,
    /// Bit i: and the one i + 1 behind it.
    beyond: Cell<u64>,
    /// All members are known to have finished this one and those before.
    safe: Cell<u64>,
}

/// The words that cells of so many bytes need for so many members.
pub fn words(members: u32, cell: usize) -> usize {
    let (members, depth) = (members as usize, DEPTH as usize);
    ((1 + members + depth) * LINE + (members + 1) * depth * cell) / WORD
}

impl<M: Deref<Target = [AtomicU64]>> Cells<M> {
    /// The cells in memory of [`words`] words; `cell` is a multiple of [`LINE`] and not zero.
    pub fn new(memory: M, me: u32, members: u32, cell: usize) -> Option<Cells<M>> {
        let fits = me < members
            && cell > 0
            && cell.is_multiple_of(LINE)
            && memory.len() >= words(members, cell);
        fits.then_some(Cells {
            words: memory,
            me,
            members,
            first: (1 + members as usize + DEPTH as usize) * STEP,
            cell: cell / WORD,
            finished: Cell::new(0),
            beyond: Cell::new(0),
            safe: Cell::new(0),
        })
    }

    /// How many bytes a member can show.
    pub fn capacity(&self) -> usize {
        (self.cell - 1) * WORD
    }

    /// How many processes have a cell each; fixed when they were laid out.
    pub fn members(&self) -> u32 {
        self.members
    }

    /// The place of the result.
    pub fn result(&self) -> u32 {
        self.members
    }

    /// How many members wait until others have finished; not part of the protocol above, and nobody here touches it.
    pub fn hungry(&self) -> &AtomicU64 {
        &self.words[0]
    }

    fn word_of(&self, member: u32) -> &AtomicU64 {
        &self.words[(1 + member as usize) * STEP]
    }

    #[inline]
    fn arrivals(&self, number: u64) -> &AtomicU64 {
        let slot = (number % DEPTH) as usize;
        &self.words[(1 + self.members as usize + slot) * STEP]
    }

    /// The cell of operation `number` at a place: the number, and the data.
    #[inline]
    fn cell(&self, place: u32, number: u64) -> (&AtomicU64, &[AtomicU64]) {
        let which = place as usize * DEPTH as usize + (number % DEPTH) as usize;
        let start = self.first + which * self.cell;
        let cell = &self.words[start..start + self.cell];
        (&cell[0], &cell[1..])
    }

    /// Whether nobody can still be reading what the cells of operation `number` held before.
    #[inline]
    pub fn has_room(&self, number: u64) -> bool {
        let before = number.saturating_sub(DEPTH);
        self.safe.get() >= before || self.look_round() >= before
    }

    /// What is known without a look: all members have finished this operation and those before.
    #[inline]
    pub fn all_past(&self, number: u64) {
        self.safe.set(self.safe.get().max(number));
    }

    /// Looks how far the slowest member is.
    fn look_round(&self) -> u64 {
        // SYNC POINT cells.finished
        let finished = |member| self.word_of(member).load(Ordering::Acquire);
        let slowest = (0..self.members).map(finished).min().unwrap_or(u64::MAX);
        self.all_past(slowest);
        slowest
    }

    /// Whether a member has finished an operation and all before it.
    #[inline]
    pub fn has_finished(&self, member: u32, number: u64) -> bool {
        // SYNC POINT cells.finished
        self.word_of(member).load(Ordering::Acquire) >= number
    }

    /// Shows data in operation `number` at a place that this member has to fill; there is room for them.
    #[inline]
    pub fn show(&self, place: u32, number: u64, data: &[u8]) {
        self.fill(place, number, 0, data);
        self.publish(place, number);
    }

    /// Writes data from byte `at` on into the cell of operation `number`, for which there is room.
    #[inline]
    pub fn fill(&self, place: u32, number: u64, at: usize, data: &[u8]) {
        data::write(self.cell(place, number).1, at, data);
    }

    /// Lets `with` write so many bytes into the cell of operation `number`, for which there is room.
    #[inline]
    pub fn compose<T>(
        &self,
        place: u32,
        number: u64,
        bytes: Range<usize>,
        with: impl FnOnce(&mut [u8]) -> T,
    ) -> T {
        let (_, words) = self.cell(place, number);
        data::change(words, bytes.start, bytes.len(), with)
    }

    /// Shows what the cell of operation `number` has been filled with.
    #[inline]
    pub fn publish(&self, place: u32, number: u64) {
        // SYNC POINT cells.shown
        self.cell(place, number).0.store(number, Ordering::Release);
    }

    /// Counts in operation `number`, in place of data: from zero, which is written before it is published, and then up.
    #[inline]
    pub fn count_to(&self, number: u64, count: u64) {
        // SYNC POINT cells.counted
        self.cell(self.me, number).1[0].store(count, Ordering::Release);
    }

    /// What a member has counted to; none before it shows that it counts.
    #[inline]
    pub fn counted(&self, place: u32, number: u64) -> Option<u64> {
        let (_, words) = self.cell(place, number);
        // SYNC POINT cells.counted
        self.seen(place, number)
            .then(|| words[0].load(Ordering::Acquire))
    }

    /// Asks for the line of the next number that this member will write.
    #[inline(always)]
    pub fn fetch_next(&self, number: u64) {
        let (flag, _) = self.cell(self.me, number + 1);
        prefetch_for_write(std::ptr::from_ref(flag).cast());
    }

    /// Asks for the first line of what every member shows in an operation, so that they come together and not one after another.
    pub fn fetch_all(&self, number: u64) {
        for member in 0..self.members {
            let (flag, _) = self.cell(member, number);
            prefetch_for_read(std::ptr::from_ref(flag).cast());
        }
    }

    /// Whether a place shows its data of operation `number`.
    #[inline]
    pub fn seen(&self, place: u32, number: u64) -> bool {
        // SYNC POINT cells.shown
        self.cell(place, number).0.load(Ordering::Acquire) >= number
    }

    /// Reads the data from byte `at` on; they have been seen.
    #[inline]
    pub fn read(&self, place: u32, number: u64, at: usize, out: &mut [u8]) {
        data::read(self.cell(place, number).1, at, out);
    }

    /// Lets `with` read some of the data where they lie; they have been seen.
    #[inline]
    pub fn inspect<T>(
        &self,
        place: u32,
        number: u64,
        bytes: Range<usize>,
        with: impl FnOnce(&[u8]) -> T,
    ) -> T {
        let (_, words) = self.cell(place, number);
        data::show(words, bytes.start, bytes.len(), with)
    }

    /// Copies data that a member shows to byte `to` of the result, by the member that will show it.
    pub fn pass_on(&self, number: u64, from: u32, bytes: Range<usize>, to: usize) {
        self.inspect(from, number, bytes, |data| {
            self.fill(self.members, number, to, data)
        });
    }

    /// This member has come to an operation, after it has shown what it has to; true for the last to come.
    #[inline]
    pub fn arrive(&self, number: u64) -> bool {
        // SYNC POINT cells.arrivals
        let before = self.arrivals(number).fetch_add(1, Ordering::AcqRel);
        before + 1 == u64::from(self.members)
    }

    /// Whether all have come to an operation.
    #[inline]
    pub fn all_arrived(&self, number: u64) -> bool {
        // SYNC POINT cells.arrivals
        self.arrivals(number).load(Ordering::Acquire) == u64::from(self.members)
    }

    /// Sets the arrivals of an operation back, by the one member that went on because all had come;
    /// what it shows, or that it has finished, tells the others.
    #[inline]
    pub fn forget_arrivals(&self, number: u64) {
        self.arrivals(number).store(0, Ordering::Relaxed);
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
    /// None can be more than [`DEPTH`] ahead of one that is not finished, so a word has bits enough.
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

    fn board(members: u32, cell: usize) -> Vec<AtomicU64> {
        (0..words(members, cell))
            .map(|_| AtomicU64::new(0))
            .collect()
    }

    #[test]
    fn what_one_shows_others_read_from_any_byte_on() {
        let memory = board(2, 2 * LINE);
        let member = |me| Cells::new(&memory[..], me, 2, 2 * LINE).unwrap();
        let (a, b) = (member(0), member(1));
        let data: Vec<u8> = (1..=21).collect();
        assert!(!b.seen(0, 1));
        a.show(0, 1, &data);
        assert!(b.seen(0, 1) && !b.seen(0, 2) && !b.seen(1, 1));
        for at in 0..data.len() {
            let mut read = vec![0; data.len() - at];
            b.read(0, 1, at, &mut read);
            assert_eq!(read, data[at..]);
            b.inspect(0, 1, at..data.len(), |shown| assert_eq!(shown, &data[at..]));
        }
    }

    /// Whether they fit what travels with the number or not, and nothing behind them is touched.
    #[test]
    fn data_of_every_length_are_shown_as_they_were() {
        let data: Vec<u8> = (0..200).map(|i| i as u8 | 1).collect();
        for len in 0..data.len() {
            let memory = board(2, 2 * LINE);
            let member = |me| Cells::new(&memory[..], me, 2, 2 * LINE).unwrap();
            let (a, b) = (member(0), member(1));
            a.show(0, 1, &data[..len]);
            let mut read = vec![7; data.len()];
            b.read(0, 1, 0, &mut read);
            assert_eq!(read[..len], data[..len], "{len} bytes");
            assert!(read[len..].iter().all(|byte| *byte == 0), "{len} bytes");
        }
    }

    #[test]
    fn a_cell_is_filled_in_parts_and_shown_at_once() {
        let memory = board(2, 2 * LINE);
        let member = |me| Cells::new(&memory[..], me, 2, 2 * LINE).unwrap();
        let (a, b) = (member(0), member(1));
        a.fill(0, 1, 16, &[7, 8, 9]);
        a.compose(0, 1, 0..16, |room| room.fill(1));
        assert!(!b.seen(0, 1));
        a.publish(0, 1);
        assert!(b.seen(0, 1));
        let mut read = [0; 19];
        b.read(0, 1, 0, &mut read);
        assert_eq!(read[..16], [1; 16]);
        assert_eq!(read[16..], [7, 8, 9]);
    }

    #[test]
    fn cells_are_used_again_when_all_have_finished_everything_before() {
        let memory = board(2, LINE);
        let member = |me| Cells::new(&memory[..], me, 2, LINE).unwrap();
        let (a, b) = (member(0), member(1));
        assert!(a.has_room(DEPTH) && !a.has_room(DEPTH + 1));
        // Out of turn: what began first is finished last.
        for number in [3, 2, 1] {
            assert!(!a.has_room(DEPTH + number));
            a.finish(number);
            b.finish(number);
        }
        assert!(a.has_room(DEPTH + 3) && !a.has_room(DEPTH + 4));
        assert!(b.has_finished(0, 3) && !b.has_finished(0, 4));
    }

    #[test]
    fn the_last_to_arrive_is_told_so_and_sets_the_count_back() {
        let memory = board(3, LINE);
        let member = |me| Cells::new(&memory[..], me, 3, LINE).unwrap();
        let ranks = [member(0), member(1), member(2)];
        for number in 1..=3 * DEPTH {
            let last = (number % 3) as usize;
            for (i, rank) in ranks.iter().enumerate().filter(|(i, _)| *i != last) {
                assert!(!rank.arrive(number), "{i}");
                assert!(!rank.all_arrived(number));
            }
            assert!(ranks[last].arrive(number));
            assert!(ranks[0].all_arrived(number));
            ranks[last].forget_arrivals(number);
        }
    }

    #[test]
    fn memory_that_is_too_small_is_refused() {
        let memory = board(2, LINE);
        assert!(Cells::new(&memory[1..], 0, 2, LINE).is_none());
        assert!(Cells::new(&memory[..], 2, 2, LINE).is_none());
        assert!(Cells::new(&memory[..], 0, 2, LINE - 8).is_none());
    }
}
