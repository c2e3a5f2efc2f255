//! Cells: fixed words in shared memory, in which the members of a small group
//! publish short data in each operation.
//!
//! The cells of one length form a [`Ring`].
//! Each member has `depth` cells in a ring and uses them cyclically, one for each operation.
//! Operations are numbered from 1; an operation has the same number on all members.
//! There may be several rings: deep rings of short cells and shallow rings of long cells.
//! All members choose an operation's ring from the same data, and so get the same [`CellAddress`].
//! A cell is a contiguous range of words. Its first word has the number of the operation whose data
//! follow, and is written after the data.
//! If the writer publishes the length of the data ([`Cells::publish_of`], [`Cells::length`]),
//! the first word also has the length.
//! A message of at most seven words (56 bytes) is therefore one cache line,
//! written once by its writer and read once by each reader.
//!
//! Deep rings grow: the depth of a ring at operation k is a function of k only (`rings`).
//! In the first cycle after a ring has grown, d below is the depth before the growth.
//!
//! Protocol of operation k in a ring of depth d:
//! 1. A member that publishes data writes its cell k mod d, then the number ([`Cells::show`]);
//!    before that, the member checks that all members have finished operation k - d,
//!    which used the cell before ([`Cells::has_room`]);
//! 2. A member that needs the data waits for the number ([`Cells::seen`]) and reads the cell
//!    ([`Cells::read`]);
//! 3. Each member stores the number up to which it has finished all operations. The number is
//!    in the member's own cache line ([`Cells::finish`]).
//!
//! Each operation also has one result cell, for a result that one member computes for all members.
//! A counter of arrivals in front of the result cell selects that member ([`Cells::arrive`]):
//! the last member to arrive. This member resets the counter before any member continues.
//! The result may be longer than the members' data, so its cell may be in another ring.
//! The operation has space if both rings have space ([`Cells::has_room`]).
//!
//! If a member needs the result of the preceding member in the same operation (a scan's prefix)
//! and that result is not yet published, the member writes its own contribution to its cell
//! and offers the cell ([`Cells::offer`]).
//! One member claims the offer ([`Cells::claim`]): a preceding member that has its own result,
//! or the owner, if it sees the preceding member's result after making the offer.
//! This member combines the preceding result with the contribution in the offered cell,
//! and publishes the cell as the owner's result.
//! Each member has a [`LINE`] of two adjacent cache lines: the first contains its finished number, the second its offers.
//! They are separate because the number is polled in every operation and offers are rare.
//!
//! SYNC POINT `cells.shown`: the operation number is stored (Release) after the data,
//! and loaded (Acquire) before the data.
//! SYNC POINT `cells.counted`: the count ([`Cells::count_to`]) is stored (Release) after the work,
//! and loaded (Acquire) by a member that waits for that work.
//! SYNC POINT `cells.finished`: a member's finished number is stored (Release) after its reads,
//! and loaded (Acquire) before a cell is reused.
//! SYNC POINT `cells.offered`: an offer is stored (Release) after the cell is filled, and claimed
//! (Acquire) before the cell is modified.
//! A member that offers executes a fence and then polls again for the data that it waits for.
//! A member that may claim executes a fence between publishing its data and polling for offers.
//! So at least one of the two sees the other's store. If both see it,
//! the claim still succeeds for only one of them.
//! SYNC POINT `cells.arrivals`: a member arrives (AcqRel) after publishing its data. The member that
//! completes the counter, or loads the complete counter, sees the data of all members.
//!
//! The cells of one operation are contiguous,
//! so a member that reads all of them accesses few pages:
//! after a context switch, the first access to each page is expensive.
//!
//! Writing a line that another core has read costs a round trip between the cores,
//! so a member that has published its data immediately prefetches the line of its next number
//! ([`Prefetch::next`]); no member polls that line yet.
//! A waiting member polls the line of the operation number,
//! so each pause of the writer within that line costs another round trip.
//! The part of longer data in that line is written last, together with the number ([`lay`]).

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

/// Distance in bytes between words or cells that different members write:
/// two cache lines, because processors fetch lines in pairs.
pub const LINE: usize = 128;

const WORD: usize = size_of::<u64>();

/// Size of a cache line in bytes, the unit of transfer between cores.
const FETCHED: usize = 64;

/// Number of data bytes in the same cache line as the operation number.
const FIRST: usize = FETCHED - WORD;

/// Number of low bits of a cell's first word that have the data length. The other 47 bits are the
/// operation number, which takes months to overflow.
const LENGTH_BITS: u32 = 17;

/// Maximum of the encoded length. The encoding is the length in bytes + 1,
/// or 0 if the writer publishes no length;
/// a longer length is encoded as this maximum.
const LONGEST_TOLD: u64 = (1 << LENGTH_BITS) - 1;

/// Maximum length that [`Cells::published`] returns.
pub const LONGEST_PUBLISHED: usize = LONGEST_TOLD as usize - 1;

#[inline(always)]
fn told(bytes: usize) -> u64 {
    (bytes as u64 + 1).min(LONGEST_TOLD)
}

/// Maximum number of consecutive operations in which a member may have unclaimed offers.
pub const OFFERS: u64 = 4;

/// Number of words in a [`LINE`].
const STEP: usize = LINE / WORD;

/// One member's view of the cells in `M`, whose words are initially zero.
pub struct Cells<M> {
    /// The shared words: a line for the waiters, a line for each member's finished number,
    /// and the rings of cells.
    words: M,
    me: u32,
    members: u32,
    /// The number up to which this member has finished all operations.
    finished: Cell<u64>,
    /// Bit i is set if this member has also finished operation `finished` + i + 1.
    beyond: Cell<u64>,
    /// The number up to which all members are known to have finished all operations.
    safe: Cell<u64>,
}

impl<M: Deref<Target = [AtomicU64]>> Cells<M> {
    /// Creates the view of member `me`, in memory of at least [`words`] words;
    /// `None` if `me`, `members` or a ring is not valid.
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

    /// Returns the shared counter of members that wait until others have finished.
    /// This module does not use the counter; its callers change it.
    pub fn waiters(&self) -> &AtomicU64 {
        &self.words[0]
    }

    fn word_of(&self, member: u32) -> &AtomicU64 {
        &self.words[(1 + member as usize) * STEP]
    }

    /// Returns the index of the word that counts an operation's arrivals,
    /// between the members' cells and the result's cell.
    #[inline(always)]
    fn arrivals_at(&self, address: CellAddress<'_>) -> usize {
        address.first_of_result + self.members as usize * address.ring_of_result.cell()
    }

    #[inline(always)]
    fn arrivals(&self, address: CellAddress<'_>) -> &AtomicU64 {
        &self.words[self.arrivals_at(address)]
    }

    /// Returns the index of the first word of an operation's cell, and the cell's length in words.
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

    /// Returns the word with the cell's operation number.
    #[inline(always)]
    fn flag(&self, cell: impl Into<CellOf>, address: CellAddress<'_>) -> &AtomicU64 {
        &self.words[self.cell(cell, address).0]
    }

    #[inline(always)]
    fn data(&self, cell: impl Into<CellOf>, address: CellAddress<'_>) -> &[AtomicU64] {
        let (start, len) = self.cell(cell, address);
        &self.words[start + 1..start + len]
    }

    /// Returns true if an operation's cells may be written: no member still reads their old contents.
    #[inline(always)]
    pub fn has_room(&self, address: CellAddress<'_>) -> bool {
        let depth = address.depth();
        self.safe.get() + depth >= address.number || self.look_round() + depth >= address.number
    }

    /// Returns true if all members have finished this operation and all earlier ones.
    #[inline(always)]
    pub fn have_finished(&self, number: u64) -> bool {
        self.safe.get() >= number || self.look_round() >= number
    }

    /// Records that all members have finished this operation and all earlier ones,
    /// for a caller that knows this without polling.
    #[inline(always)]
    pub fn all_past(&self, number: u64) {
        self.safe.set(self.safe.get().max(number));
    }

    /// Loads the finished numbers of all members and returns the smallest.
    /// All members have finished the operations up to this number.
    #[cold]
    fn look_round(&self) -> u64 {
        // SYNC POINT cells.finished
        let finished = |member| self.word_of(member).load(Ordering::Acquire);
        let slowest = (0..self.members).map(finished).min().unwrap_or(0);
        self.all_past(slowest);
        slowest
    }

    /// Returns true if `member` has finished this operation and all earlier ones.
    #[inline(always)]
    pub fn has_finished(&self, member: u32, number: u64) -> bool {
        // SYNC POINT cells.finished
        self.word_of(member).load(Ordering::Acquire) >= number
    }

    /// Writes data to a cell of an operation and publishes the cell.
    /// The caller is the cell's writer and has checked that the operation has space.
    #[inline(always)]
    pub fn show(&self, cell: impl Into<CellOf> + Copy, address: CellAddress<'_>, data: &[u8]) {
        self.fill(cell, address, 0, data);
        self.publish(cell, address);
    }

    /// Writes data to a cell from byte `at` on, without publishing. The operation must have space.
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

    /// Calls `with` to write the range `bytes` of a cell of an operation that has space.
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

    /// Publishes a cell of an operation, whose data have been written.
    #[inline(always)]
    pub fn publish(&self, cell: impl Into<CellOf> + Copy, address: CellAddress<'_>) {
        self.publish_word(cell, address, 0);
    }

    /// As [`Cells::publish`], but also publishes the length of the data in bytes.
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

    /// Compares the published length of data that were seen ([`Cells::seen`]) with `expected`.
    /// `Err` has the published length, or `None` if the writer published no length.
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

    /// Returns the published length of data that were seen ([`Cells::seen`]), in bytes:
    /// at most [`LONGEST_PUBLISHED`], and 0 if the writer published no length.
    #[inline(always)]
    pub fn published(&self, cell: impl Into<CellOf> + Copy, address: CellAddress<'_>) -> usize {
        let flag = self.flag(cell, address).load(Ordering::Relaxed) & LONGEST_TOLD;
        (flag as usize).saturating_sub(1)
    }

    /// Stores this member's count in its cell, as the first word of the data.
    /// The caller writes 0 before it publishes the cell, and afterwards only increasing counts.
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

    /// Returns the methods of this member that prefetch cache lines.
    #[inline(always)]
    pub fn prefetch(&self) -> Prefetch<'_, M> {
        Prefetch(self)
    }

    /// Returns true if the data of an operation have been published in a cell.
    #[inline(always)]
    pub fn seen(&self, cell: impl Into<CellOf> + Copy, address: CellAddress<'_>) -> bool {
        self.watch(cell, address)()
    }

    /// Returns a closure that evaluates [`Cells::seen`], for polling loops.
    #[inline(always)]
    pub fn watch(&self, cell: impl Into<CellOf>, address: CellAddress<'_>) -> impl Fn() -> bool {
        let flag = self.flag(cell, address);
        let number = address.number << LENGTH_BITS;
        // SYNC POINT cells.shown
        move || flag.load(Ordering::Acquire) >= number
    }

    /// Reads the data from byte `at` on. [`Cells::watch`] must have returned true.
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

    /// Calls `with` on a range of the data in place. [`Cells::watch`] must have returned true.
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

    /// Copies the bytes `bytes` of the data that member `from` has published into the result cell.
    /// The copy begins at byte `to`. Only the member that will publish the result may call this.
    pub fn pass_on(&self, address: CellAddress<'_>, from: u32, bytes: Range<usize>, to: usize) {
        self.inspect(from, address, bytes, |data| {
            self.fill(CellOf::Result, address, to, data)
        });
    }

    /// Counts this member's arrival at an operation, after it has published its data.
    /// Returns true on the last member to arrive.
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

    /// Resets an operation's arrivals. The caller is the member that continued because all arrived.
    /// Other members see the reset before the result or finished number that the caller publishes.
    #[inline(always)]
    pub fn forget_arrivals(&self, address: CellAddress<'_>) {
        self.arrivals(address).store(0, Ordering::Relaxed);
    }

    /// Returns the word of `member` in which it offers its cell of operation `number`.
    #[inline(always)]
    fn offer_of(&self, member: u32, number: u64) -> &AtomicU64 {
        let behind = FETCHED / WORD + (number % OFFERS) as usize;
        &self.words[(1 + member as usize) * STEP + behind]
    }

    /// Offers this member's filled cell of an operation to other members, and executes a fence,
    /// which orders later reads after the offer.
    pub fn offer(&self, address: CellAddress<'_>) {
        // SYNC POINT cells.offered
        self.offer_of(self.me, address.number)
            .store(address.number, Ordering::Release);
        fence(Ordering::SeqCst);
    }

    /// Claims a member's offer; returns true if the offer existed and was not yet claimed.
    /// The claiming member then completes and publishes the cell.
    #[inline(always)]
    pub fn claim(&self, member: u32, address: CellAddress<'_>) -> bool {
        let offer = self.offer_of(member, address.number);
        // SYNC POINT cells.offered
        offer.load(Ordering::Relaxed) == address.number
            && offer
                .compare_exchange(address.number, 0, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
    }

    /// Publishes that this member has finished operation `number`.
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

    /// As [`Cells::finish`], for an operation that finishes out of order:
    /// earlier operations are still in progress, or later ones have finished.
    ///
    /// The function ends with a fence. The finished number may be published only later,
    /// by the [`Cells::finish`] of an earlier operation, whose caller may execute no fence.
    /// Operations that finish out of order use rings of at most [`DEEPEST_UNORDERED`],
    /// so one word has a bit for each operation after an unfinished one.
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
