//! Cells: slots in shared memory in which the members of a small group publish short data, operation after operation.
//!
//! The cells of one length form a [`Ring`]. Each member has `depth` cells of a ring and uses them in turn. Operations are numbered from 1, alike on all members.
//! There may be several rings: deep ones of short cells and shallow ones of long cells.
//! All members choose an operation's ring from data that are the same on all of them, so they compute the same [`CellAddress`].
//! A cell is a contiguous run of words. The first word holds the number of the operation whose data follow, and is written last.
//! It has bits for the length of the data, for a writer that publishes it ([`Cells::publish_of`], [`Cells::length`]).
//! A message of at most seven words is therefore one cache line, written once by its writer and read once by each reader.
//!
//! Deep rings grow: the depth of a ring at operation k is a function of k alone (`rings`). In the first round after a ring has grown,
//! d below is the depth before.
//!
//! Protocol of operation k in a ring of depth d:
//! 1. a member that publishes data writes its cell k mod d, then the number ([`Cells::show`]);
//!    before that it checks that all members have finished operation k - d, the previous user of the cell ([`Cells::has_room`]);
//! 2. a member that needs the data waits for the number and reads ([`Cells::seen`], [`Cells::read`]);
//! 3. a member that has finished publishes the number up to which it has finished all operations, in a cache line of its own ([`Cells::finish`]).
//!
//! Besides the members' cells, each operation has one more cell, for a result that one member computes for all.
//! A count of arrivals in front of the result's cell determines that member ([`Cells::arrive`]): the last to arrive. It resets the count before any member continues.
//! The result's cell may be in another ring than the members' cells, because the result may be longer; the operation has room where both rings have.
//!
//! Where an operation needs the result of the previous one, a member can fill its cell with its own contribution and offer it ([`Cells::offer`]) instead of waiting.
//! The member that claims the offer ([`Cells::claim`]) combines in place and publishes the cell on behalf of its owner. Offers are stored in the line of the member's word of finished operations, after the 64 bytes fetched with that word:
//! they are polled in every operation and written rarely.
//!
//! SYNC POINT `cells.shown`: the number is written (Release) after the data and read (Acquire) before them.
//! SYNC POINT `cells.counted`: the count is written (Release) after the work that it counts, and read (Acquire) by a member that waits for that work.
//! SYNC POINT `cells.finished`: a member's word is written (Release) after all of its reads, and read (Acquire) before a cell is reused.
//! SYNC POINT `cells.offered`: an offer is written (Release) after the cell is filled, and claimed (Acquire) before the cell is modified.
//! A member that offers executes a fence and then polls once more for what it was waiting for; the member that could claim executes a fence between publishing its data and polling for offers:
//! so at least one of the two sees the other, and if both do, one of them gets the claim.
//! SYNC POINT `cells.arrivals`: each arrival (AcqRel) comes after the member's publish; the member that completes the count, or reads it complete, sees the data of all.
//!
//! The cells of one operation are contiguous, so a member that reads all of them touches few pages: after a context switch, the first access to each page is expensive.
//!
//! A line that another core has read costs a round trip before it can be written,
//! so a member that has published prefetches the line of its next number at once ([`Prefetch::next`]), while no member polls it yet.
//! A waiting member polls the line of the number, so each pause of the writer within that line costs a round trip too:
//! of longer data, that line is written last, with the number ([`lay`]).

mod data;
mod prefetch;
mod rings;
#[cfg(all(test, not(loom)))]
mod tests;

use crate::atomic::{AtomicU64, Ordering, fence};
pub use data::lay;
pub use prefetch::Prefetch;
use rings::of_result;
pub use rings::{
    CellAddress, CellOf, CellRing, DEEP_AT_FIRST, DEEPEST, DEEPEST_UNORDERED, GROWTH, Ring,
    cell_rings, words,
};
use std::cell::Cell;
use std::ops::{Deref, Range};

/// Processors fetch lines in pairs, so data written by different members are this far apart.
pub const LINE: usize = 128;

const WORD: usize = size_of::<u64>();

/// Bytes of a cache line, the unit of transfer between cores.
const FETCHED: usize = 64;

/// The bytes of data in the same cache line as the number.
const FIRST: usize = FETCHED - WORD;

/// The low 17 bits of the word hold the data length; the other 47 are an operation counter that takes months to overflow.
const LENGTH_BITS: u32 = 17;

/// The largest encoded length. The encoding is length + 1, or 0 if the writer publishes no length; longer data are encoded as this maximum.
const LONGEST_TOLD: u64 = (1 << LENGTH_BITS) - 1;

/// The largest length that [`Cells::published`] returns.
pub const LONGEST_PUBLISHED: usize = LONGEST_TOLD as usize - 1;

#[inline(always)]
fn told(bytes: usize) -> u64 {
    (bytes as u64 + 1).min(LONGEST_TOLD)
}

/// The number of consecutive operations in which a member may have an offer at the same time.
pub const OFFERS: u64 = 4;

/// Words in a line.
const STEP: usize = LINE / WORD;

/// One member's view of the cells in `M`, whose words are initially zero.
pub struct Cells<M> {
    /// A line for the number of waiters, one line for each member's word, and the rings.
    words: M,
    me: u32,
    members: u32,
    /// The number up to which this member has finished all operations.
    finished: Cell<u64>,
    /// Bit i: this member has also finished operation `finished` + i + 1.
    beyond: Cell<u64>,
    /// The number up to which all members are known to have finished all operations.
    safe: Cell<u64>,
}

impl<M: Deref<Target = [AtomicU64]>> Cells<M> {
    /// Creates the view of member `me`, in memory of at least [`words`] words; `None` if the numbers do not fit.
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

    /// Returns the number of members, fixed when the cells were laid out.
    pub fn members(&self) -> u32 {
        self.members
    }

    /// Returns the counter of members that wait until others have finished; not part of the protocol above, and not accessed in this module.
    pub fn waiters(&self) -> &AtomicU64 {
        &self.words[0]
    }

    fn word_of(&self, member: u32) -> &AtomicU64 {
        &self.words[(1 + member as usize) * STEP]
    }

    /// The index of the word that counts arrivals: after the members' cells and before the result's.
    #[inline(always)]
    fn arrivals_at(&self, address: CellAddress<'_>) -> usize {
        address.first_of_result + self.members as usize * address.ring_of_result.cell()
    }

    #[inline(always)]
    fn arrivals(&self, address: CellAddress<'_>) -> &AtomicU64 {
        &self.words[self.arrivals_at(address)]
    }

    /// Returns the index of the first word of a cell of an operation, and the cell's length in words.
    #[inline(always)]
    fn cell(&self, cell: impl Into<CellOf>, address: CellAddress<'_>) -> (usize, usize) {
        match cell.into() {
            CellOf::Of(member) => {
                let len = address.cell_ring.cell();
                (address.first + member as usize * len, len)
            }
            CellOf::Result => (
                self.arrivals_at(address) + 1,
                of_result(address.ring_of_result.cell()),
            ),
        }
    }

    /// The word that holds the cell's operation number.
    #[inline(always)]
    fn flag(&self, cell: impl Into<CellOf>, address: CellAddress<'_>) -> &AtomicU64 {
        &self.words[self.cell(cell, address).0]
    }

    /// The words of the cell's data.
    #[inline(always)]
    fn data(&self, cell: impl Into<CellOf>, address: CellAddress<'_>) -> &[AtomicU64] {
        let (start, len) = self.cell(cell, address);
        &self.words[start + 1..start + len]
    }

    /// Returns true if no member can still be reading the previous contents of an operation's cells.
    #[inline(always)]
    pub fn has_room(&self, address: CellAddress<'_>) -> bool {
        let depth = address.depth();
        self.safe.get() + depth >= address.number || self.look_round() + depth >= address.number
    }

    /// Returns true if all members have finished this operation and all before it.
    #[inline(always)]
    pub fn have_finished(&self, number: u64) -> bool {
        self.safe.get() >= number || self.look_round() >= number
    }

    /// Records that all members have finished this operation and all before it, when the caller knows that without polling.
    #[inline(always)]
    pub fn all_past(&self, number: u64) {
        self.safe.set(self.safe.get().max(number));
    }

    /// Polls the words of all members and returns the number up to which the slowest has finished.
    #[cold]
    fn look_round(&self) -> u64 {
        // SYNC POINT cells.finished
        let finished = |member| self.word_of(member).load(Ordering::Acquire);
        let slowest = (0..self.members).map(finished).min().unwrap_or(0);
        self.all_past(slowest);
        slowest
    }

    /// Returns true if a member has finished this operation and all before it.
    #[inline(always)]
    pub fn has_finished(&self, member: u32, number: u64) -> bool {
        // SYNC POINT cells.finished
        self.word_of(member).load(Ordering::Acquire) >= number
    }

    /// Writes and publishes data in a cell of an operation. The caller is the cell's writer and has checked that the operation has room.
    #[inline(always)]
    pub fn show(&self, cell: impl Into<CellOf> + Copy, address: CellAddress<'_>, data: &[u8]) {
        self.fill(cell, address, 0, data);
        self.publish(cell, address);
    }

    /// Writes data from byte `at` on into a cell of an operation, which has room.
    #[inline(always)]
    pub fn fill(
        &self,
        cell: impl Into<CellOf> + Copy,
        address: CellAddress<'_>,
        at: usize,
        data: &[u8],
    ) {
        data::write(self.data(cell, address), at, data);
    }

    /// Calls `with` to write the range `bytes` of a cell of an operation, which has room.
    #[inline(always)]
    pub fn compose<T>(
        &self,
        cell: impl Into<CellOf> + Copy,
        address: CellAddress<'_>,
        bytes: Range<usize>,
        with: impl FnOnce(&mut [u8]) -> T,
    ) -> T {
        data::change(self.data(cell, address), bytes.start, bytes.len(), with)
    }

    /// Publishes the contents of a cell of an operation.
    #[inline(always)]
    pub fn publish(&self, cell: impl Into<CellOf> + Copy, address: CellAddress<'_>) {
        self.publish_word(cell, address, 0);
    }

    /// As [`Cells::publish`], with the length of the data in bytes.
    #[inline(always)]
    pub fn publish_of(
        &self,
        cell: impl Into<CellOf> + Copy,
        address: CellAddress<'_>,
        bytes: usize,
    ) {
        self.publish_word(cell, address, told(bytes));
    }

    #[inline(always)]
    fn publish_word(&self, cell: impl Into<CellOf>, address: CellAddress<'_>, told: u64) {
        let word = address.number << LENGTH_BITS | told;
        // SYNC POINT cells.shown
        self.flag(cell, address).store(word, Ordering::Release);
    }

    /// Compares the published length of data that have been seen with `expected`: `Err` holds the published length, or `None` if the writer published none.
    #[inline(always)]
    pub fn length(
        &self,
        cell: impl Into<CellOf> + Copy,
        address: CellAddress<'_>,
        expected: usize,
    ) -> Result<(), Option<usize>> {
        let flag = self.flag(cell, address).load(Ordering::Relaxed) & LONGEST_TOLD;
        match flag == told(expected) {
            true => Ok(()),
            false => Err((flag as usize).checked_sub(1)),
        }
    }

    /// The published length of data that have been seen: at most [`LONGEST_PUBLISHED`], and 0 if the writer published none.
    #[inline(always)]
    pub fn published(&self, cell: impl Into<CellOf> + Copy, address: CellAddress<'_>) -> usize {
        let flag = self.flag(cell, address).load(Ordering::Relaxed) & LONGEST_TOLD;
        (flag as usize).saturating_sub(1)
    }

    /// Sets this member's count in an operation, which replaces the data. The caller writes 0 before it publishes the cell, and then only larger counts.
    #[inline(always)]
    pub fn count_to(&self, address: CellAddress<'_>, count: u64) {
        // SYNC POINT cells.counted
        self.data(self.me, address)[0].store(count, Ordering::Release);
    }

    /// Returns a member's count; `None` until the member has published its cell.
    #[inline(always)]
    pub fn counted(&self, cell: impl Into<CellOf> + Copy, address: CellAddress<'_>) -> Option<u64> {
        // SYNC POINT cells.counted
        let count = || self.data(cell, address)[0].load(Ordering::Acquire);
        self.seen(cell, address).then(count)
    }

    /// The lines that this member may prefetch.
    #[inline(always)]
    pub fn prefetch(&self) -> Prefetch<'_, M> {
        Prefetch(self)
    }

    /// Returns true if the data of an operation have been published in a cell.
    #[inline(always)]
    pub fn seen(&self, cell: impl Into<CellOf> + Copy, address: CellAddress<'_>) -> bool {
        self.watch(cell, address)()
    }

    /// As [`Cells::seen`], as a closure to be polled.
    #[inline(always)]
    pub fn watch(&self, cell: impl Into<CellOf>, address: CellAddress<'_>) -> impl Fn() -> bool {
        let flag = self.flag(cell, address);
        let number = address.number << LENGTH_BITS;
        // SYNC POINT cells.shown
        move || flag.load(Ordering::Acquire) >= number
    }

    /// Reads the data from byte `at` on; [`Cells::watch`] has returned true for this operation.
    #[inline(always)]
    pub fn read(
        &self,
        cell: impl Into<CellOf> + Copy,
        address: CellAddress<'_>,
        at: usize,
        out: &mut [u8],
    ) {
        data::read(self.data(cell, address), at, out);
    }

    /// Calls `with` on part of the data in place; [`Cells::watch`] has returned true for this operation.
    #[inline(always)]
    pub fn inspect<T>(
        &self,
        cell: impl Into<CellOf> + Copy,
        address: CellAddress<'_>,
        bytes: Range<usize>,
        with: impl FnOnce(&[u8]) -> T,
    ) -> T {
        data::show(self.data(cell, address), bytes.start, bytes.len(), with)
    }

    /// Copies data that member `from` has published to byte `to` of the result; called by the member that will publish the result.
    pub fn pass_on(&self, address: CellAddress<'_>, from: u32, bytes: Range<usize>, to: usize) {
        self.inspect(from, address, bytes, |data| {
            self.fill(CellOf::Result, address, to, data)
        });
    }

    /// Counts this member's arrival at an operation, after it has published its data; returns true for the last to arrive.
    #[inline(always)]
    pub fn arrive(&self, address: CellAddress<'_>) -> bool {
        // SYNC POINT cells.arrivals
        let before = self.arrivals(address).fetch_add(1, Ordering::AcqRel);
        before + 1 == u64::from(self.members)
    }

    /// Returns true if all members have arrived at an operation.
    #[inline(always)]
    pub fn all_arrived(&self, address: CellAddress<'_>) -> bool {
        // SYNC POINT cells.arrivals
        self.arrivals(address).load(Ordering::Acquire) == u64::from(self.members)
    }

    /// Resets the arrivals of an operation; called by the one member that continued because all had arrived.
    /// The result that it publishes next, or its next finished number, orders the reset for the others.
    #[inline(always)]
    pub fn forget_arrivals(&self, address: CellAddress<'_>) {
        self.arrivals(address).store(0, Ordering::Relaxed);
    }

    /// The word of a member's offer for an operation.
    #[inline(always)]
    fn offer_of(&self, member: u32, number: u64) -> &AtomicU64 {
        let behind = FETCHED / WORD + (number % OFFERS) as usize;
        &self.words[(1 + member as usize) * STEP + behind]
    }

    /// Offers this member's filled cell of an operation to the member that claims it, then executes a fence: later reads are ordered after the offer.
    pub fn offer(&self, address: CellAddress<'_>) {
        // SYNC POINT cells.offered
        self.offer_of(self.me, address.number)
            .store(address.number, Ordering::Release);
        fence(Ordering::SeqCst);
    }

    /// Claims a member's offer; returns true if there was one and no other member has claimed it. The claimer completes and publishes the cell.
    #[inline(always)]
    pub fn claim(&self, member: u32, address: CellAddress<'_>) -> bool {
        let offer = self.offer_of(member, address.number);
        // SYNC POINT cells.offered
        offer.load(Ordering::Relaxed) == address.number
            && offer
                .compare_exchange(address.number, 0, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
    }

    /// Publishes that this member has finished an operation.
    #[inline(always)]
    pub fn finish(&self, number: u64) {
        if number == self.finished.get() + 1 && self.beyond.get() == 0 {
            self.finished.set(number);
            self.publish_finished();
        } else {
            self.finish_out_of_turn(number);
        }
    }

    #[inline(always)]
    fn publish_finished(&self) {
        // SYNC POINT cells.finished
        self.word_of(self.me)
            .store(self.finished.get(), Ordering::Release);
    }

    /// As [`Cells::finish`], while earlier operations are still in progress or later ones are already finished.
    ///
    /// It ends with a fence: an operation whose end has one may become visible only now, behind the end of an earlier one that has none.
    /// Operations that finish out of order use rings of at most [`DEEPEST_UNORDERED`], so none is further ahead of an unfinished one than a word has bits.
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
        self.publish_finished();
        fence(Ordering::SeqCst);
    }
}
