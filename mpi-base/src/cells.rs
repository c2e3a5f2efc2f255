//! Cells: where each of a few processes shows the others a few bytes, operation after operation.
//!
//! The cells of one length are a [`Ring`]: each member has as many of them as the ring is deep, used in turn by operations that all members number alike, from 1 on.
//! There may be several rings, deep ones of short cells and shallow ones of long cells;
//! in which one an operation's data lie follows from what all members know alike, so they find the same [`Spot`].
//! A cell is one run of words; the first holds the number of the operation whose data follow, and is written last.
//! Beside the number there is room for how long they are, for a writer that wants to say so ([`Cells::publish_of`], [`Cells::length`]).
//! So a message of seven words or less is one cache line, written once and read once by each reader.
//!
//! Deep rings grow: how deep a ring is for operation k follows from k alone (`rings`). In the first round after a ring has grown,
//! d below is the depth before.
//!
//! Protocol of operation k in a ring of depth d:
//! 1. a member that has something to show writes its cell k mod d, then the number ([`Cells::show`]);
//!    before that it makes sure that all members have finished operation k - d, and so whatever the cell held before ([`Cells::has_room`]);
//! 2. a member that needs the data waits for the number and reads ([`Cells::seen`], [`Cells::read`]);
//! 3. when a member has finished it says so in a line of its own ([`Cells::finish`]): the last number up to which it has finished everything.
//!
//! There is one place more than there are members: the result of an operation that one of them works out for all.
//! Which one that is, a count of arrivals in front of each of its cells tells ([`Cells::arrive`]); the last to arrive sets it back before any member goes on.
//! It may lie in another ring than what the members show, as it may be longer; the operation has room where both have.
//!
//! Where one needs what the one before has worked out, a member may fill its cell with its own part and offer that ([`Cells::offer`]) instead of waiting;
//! the member that claims it ([`Cells::claim`]) works on it where it lies, and shows it in the other's name. Offers lie in the line of the member's word, behind what travels with that:
//! they are looked at in every operation and written rarely.
//!
//! SYNC POINT `cells.shown`: the number (Release) after the data, read (Acquire) before them.
//! SYNC POINT `cells.counted`: what is counted (Release) after what was done for it, looked at (Acquire) by a member that waits for that.
//! SYNC POINT `cells.finished`: a member's word (Release) after all that it read, looked at (Acquire) before a cell is written again.
//! SYNC POINT `cells.offered`: an offer (Release) after the cell is filled, claimed (Acquire) before it is worked on.
//! A member that offers has a fence before it looks once more whether it could have gone on itself, and one that may be needed has one between what it shows and looking for offers:
//! so one of the two sees the other, and if both do, one of them gets the claim.
//! SYNC POINT `cells.arrivals`: each arrival (AcqRel) after what its member shows; the member that completes the count, or sees it complete, collects all.
//!
//! The cells of one operation lie side by side, so that a member that looks at all of them looks at few pages: after a switch each first look at one costs.
//!
//! A line that another core has read costs a round trip before it can be written.
//! So a member that has shown something asks for the line of its next number at once ([`Cells::fetch_next`]), which no member looks at yet.
//! And a waiting member reads the line of the number again and again, so each of its writers' pauses costs a round trip too:
//! of longer data that line is written last, with the number ([`lay`]).

mod data;
mod rings;
#[cfg(all(test, not(loom)))]
mod tests;

use crate::atomic::{AtomicU64, Ordering, fence, prefetch_for_read, prefetch_for_write};
pub use data::lay;
use rings::of_result;
pub use rings::{
    DEEP_AT_FIRST, DEEPEST, DEEPEST_UNORDERED, GROWTH, Place, Ring, Spot, Track, tracks, words,
};
use std::cell::Cell;
use std::ops::{Deref, Range};

/// Processors fetch lines in pairs, so what different members write lies this far apart.
pub const LINE: usize = 128;

const WORD: usize = size_of::<u64>();

/// What travels between cores at once.
const FETCHED: usize = 64;

/// The bytes of data that travel with their number.
const FIRST: usize = FETCHED - WORD;

/// So many bits of the word of a number tell how long the data are; the others count operations for months without a pause.
const LENGTH_BITS: u32 = 17;

/// What is told is one more than the length, and none if the writer says none; what is longer than this is told as this.
const LONGEST_TOLD: u64 = (1 << LENGTH_BITS) - 1;

#[inline(always)]
fn told(bytes: usize) -> u64 {
    (bytes as u64 + 1).min(LONGEST_TOLD)
}

/// A member may offer something in so many operations at a time that follow one another.
pub const OFFERS: u64 = 4;

/// Words in a line.
const STEP: usize = LINE / WORD;

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

    /// How many members wait until others have finished; not part of the protocol above, and no code here touches it.
    pub fn hungry(&self) -> &AtomicU64 {
        &self.words[0]
    }

    fn word_of(&self, member: u32) -> &AtomicU64 {
        &self.words[(1 + member as usize) * STEP]
    }

    /// Where the arrivals are: behind the members' cells, and the result's cell is behind them.
    #[inline(always)]
    fn arrivals_at(&self, spot: Spot<'_>) -> usize {
        spot.first_of_result + self.members as usize * spot.track_of_result.cell()
    }

    #[inline(always)]
    fn arrivals(&self, spot: Spot<'_>) -> &AtomicU64 {
        &self.words[self.arrivals_at(spot)]
    }

    /// Where a place's cell of an operation begins, and how many words it has.
    #[inline(always)]
    fn cell(&self, place: impl Into<Place>, spot: Spot<'_>) -> (usize, usize) {
        match place.into() {
            Place::Of(member) => {
                let len = spot.track.cell();
                (spot.first + member as usize * len, len)
            }
            Place::Result => (
                self.arrivals_at(spot) + 1,
                of_result(spot.track_of_result.cell()),
            ),
        }
    }

    /// The number in it.
    #[inline(always)]
    fn flag(&self, place: impl Into<Place>, spot: Spot<'_>) -> &AtomicU64 {
        &self.words[self.cell(place, spot).0]
    }

    /// The words of its data.
    #[inline(always)]
    fn data(&self, place: impl Into<Place>, spot: Spot<'_>) -> &[AtomicU64] {
        let (start, len) = self.cell(place, spot);
        &self.words[start + 1..start + len]
    }

    /// Whether no member can still be reading what the cells of an operation held before.
    #[inline(always)]
    pub fn has_room(&self, spot: Spot<'_>) -> bool {
        let depth = spot.depth();
        self.safe.get() + depth >= spot.number || self.look_round() + depth >= spot.number
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
    pub fn show(&self, place: impl Into<Place> + Copy, spot: Spot<'_>, data: &[u8]) {
        self.fill(place, spot, 0, data);
        self.publish(place, spot);
    }

    /// Writes data from byte `at` on into the cell of an operation, for which there is room.
    #[inline(always)]
    pub fn fill(&self, place: impl Into<Place> + Copy, spot: Spot<'_>, at: usize, data: &[u8]) {
        data::write(self.data(place, spot), at, data);
    }

    /// Lets `with` write so many bytes into the cell of an operation, for which there is room.
    #[inline(always)]
    pub fn compose<T>(
        &self,
        place: impl Into<Place> + Copy,
        spot: Spot<'_>,
        bytes: Range<usize>,
        with: impl FnOnce(&mut [u8]) -> T,
    ) -> T {
        data::change(self.data(place, spot), bytes.start, bytes.len(), with)
    }

    /// Shows what the cell of an operation has been filled with.
    #[inline(always)]
    pub fn publish(&self, place: impl Into<Place> + Copy, spot: Spot<'_>) {
        self.publish_word(place, spot, 0);
    }

    /// The same, which says that it is so many bytes.
    #[inline(always)]
    pub fn publish_of(&self, place: impl Into<Place> + Copy, spot: Spot<'_>, bytes: usize) {
        self.publish_word(place, spot, told(bytes));
    }

    #[inline(always)]
    fn publish_word(&self, place: impl Into<Place>, spot: Spot<'_>, told: u64) {
        let word = spot.number << LENGTH_BITS | told;
        // SYNC POINT cells.shown
        self.flag(place, spot).store(word, Ordering::Release);
    }

    /// Whether what a place shows, and has been seen, is said to be so many bytes; else what it is said to be, if anything is said.
    #[inline(always)]
    pub fn length(
        &self,
        place: impl Into<Place> + Copy,
        spot: Spot<'_>,
        expected: usize,
    ) -> Result<(), Option<usize>> {
        let said = self.flag(place, spot).load(Ordering::Relaxed) & LONGEST_TOLD;
        match said == told(expected) {
            true => Ok(()),
            false => Err((said as usize).checked_sub(1)),
        }
    }

    /// Counts in an operation, in place of data: from zero, which is written before it is published, and then up.
    #[inline(always)]
    pub fn count_to(&self, spot: Spot<'_>, count: u64) {
        // SYNC POINT cells.counted
        self.data(self.me, spot)[0].store(count, Ordering::Release);
    }

    /// What a member has counted to; none before it shows that it counts.
    #[inline(always)]
    pub fn counted(&self, place: impl Into<Place> + Copy, spot: Spot<'_>) -> Option<u64> {
        // SYNC POINT cells.counted
        let count = || self.data(place, spot)[0].load(Ordering::Acquire);
        self.seen(place, spot).then(count)
    }

    /// Asks for the line of the next number that this member will write in the same ring.
    #[inline(always)]
    pub fn fetch_next(&self, spot: Spot<'_>) {
        let next = spot.track.cells_of(spot.number + 1);
        let flag = &self.words[next + self.me as usize * spot.track.cell()];
        prefetch_for_write(std::ptr::from_ref(flag).cast());
    }

    /// Asks for the lines of a number so far behind this one in the same ring: what a member will show, to read, and what this one will write.
    #[inline(always)]
    pub fn fetch_ahead(&self, spot: Spot<'_>, by: u64, member: u32) {
        let next = spot.track.cells_of(spot.number + by);
        let flag = |member: u32| &self.words[next + member as usize * spot.track.cell()];
        prefetch_for_read(std::ptr::from_ref(flag(member)).cast());
        prefetch_for_write(std::ptr::from_ref(flag(self.me)).cast());
    }

    /// Asks for the first line of what every member shows in an operation, so that they come together and not one after another.
    pub fn fetch_all(&self, spot: Spot<'_>) {
        for member in 0..self.members {
            prefetch_for_read(std::ptr::from_ref(self.flag(member, spot)).cast());
        }
    }

    /// Whether a place shows its data of an operation.
    #[inline(always)]
    pub fn seen(&self, place: impl Into<Place> + Copy, spot: Spot<'_>) -> bool {
        self.watch(place, spot)()
    }

    /// The same for a member that looks again and again.
    #[inline(always)]
    pub fn watch(&self, place: impl Into<Place>, spot: Spot<'_>) -> impl Fn() -> bool {
        let flag = self.flag(place, spot);
        let number = spot.number << LENGTH_BITS;
        // SYNC POINT cells.shown
        move || flag.load(Ordering::Acquire) >= number
    }

    /// Reads the data from byte `at` on; they have been seen.
    #[inline(always)]
    pub fn read(&self, place: impl Into<Place> + Copy, spot: Spot<'_>, at: usize, out: &mut [u8]) {
        data::read(self.data(place, spot), at, out);
    }

    /// Lets `with` read some of the data where they lie; they have been seen.
    #[inline(always)]
    pub fn inspect<T>(
        &self,
        place: impl Into<Place> + Copy,
        spot: Spot<'_>,
        bytes: Range<usize>,
        with: impl FnOnce(&[u8]) -> T,
    ) -> T {
        data::show(self.data(place, spot), bytes.start, bytes.len(), with)
    }

    /// Copies data that a member shows to byte `to` of the result, by the member that will show it.
    pub fn pass_on(&self, spot: Spot<'_>, from: u32, bytes: Range<usize>, to: usize) {
        self.inspect(from, spot, bytes, |data| {
            self.fill(Place::Result, spot, to, data)
        });
    }

    /// This member has come to an operation, after it has shown what it has to; true for the last to come.
    #[inline(always)]
    pub fn arrive(&self, spot: Spot<'_>) -> bool {
        // SYNC POINT cells.arrivals
        let before = self.arrivals(spot).fetch_add(1, Ordering::AcqRel);
        before + 1 == u64::from(self.members)
    }

    /// Whether all have come to an operation.
    #[inline(always)]
    pub fn all_arrived(&self, spot: Spot<'_>) -> bool {
        // SYNC POINT cells.arrivals
        self.arrivals(spot).load(Ordering::Acquire) == u64::from(self.members)
    }

    /// Sets the arrivals of an operation back, by the one member that went on because all had come;
    /// what it shows, or that it has finished, tells the others.
    #[inline(always)]
    pub fn forget_arrivals(&self, spot: Spot<'_>) {
        self.arrivals(spot).store(0, Ordering::Relaxed);
    }

    /// Where a member offers what it has filled its cell of an operation with.
    #[inline(always)]
    fn offer_of(&self, member: u32, number: u64) -> &AtomicU64 {
        let behind = FETCHED / WORD + (number % OFFERS) as usize;
        &self.words[(1 + member as usize) * STEP + behind]
    }

    /// Offers what this member has filled its cell of an operation with to the member that claims it; what is looked at from here on is looked at after that.
    pub fn offer(&self, spot: Spot<'_>) {
        // SYNC POINT cells.offered
        self.offer_of(self.me, spot.number)
            .store(spot.number, Ordering::Release);
        fence(Ordering::SeqCst);
    }

    /// Claims what a member offers, if it does and no other has; the claimer writes the cell on and publishes it.
    #[inline(always)]
    pub fn claim(&self, member: u32, spot: Spot<'_>) -> bool {
        let offer = self.offer_of(member, spot.number);
        // SYNC POINT cells.offered
        offer.load(Ordering::Relaxed) == spot.number
            && offer
                .compare_exchange(spot.number, 0, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
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
    /// Where that can be no ring is deeper than [`DEEPEST_UNORDERED`], so none is further ahead of one that is not finished, and a word has bits enough.
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
