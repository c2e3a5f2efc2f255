//! Cells: slots in shared memory in which the members of a small group publish short data in each
//! operation.
//!
//! The cells of one length form a [`Ring`].
//! Each member has `depth` cells of a ring and uses them in turn.
//! Operations are numbered from 1, equally on all members.
//! There may be several rings: deep rings of short cells and shallow rings of long cells.
//! All members choose an operation's ring from data that all of them have, so they compute the same
//! [`CellAddress`].
//! A cell is a contiguous run of words. Its first word has the number of the operation whose data
//! follow, and is written last.
//! If the writer publishes the length of the data ([`Cells::publish_of`], [`Cells::length`]),
//! the first word also has the length.
//! A message of at most seven words is therefore one cache line, written once by its writer and read once by each reader.
//!
//! Deep rings grow: the depth of a ring at operation k depends only on k (`rings`).
//! In the first round after a ring has grown, d below is the depth before the growth.
//!
//! Protocol of operation k in a ring of depth d:
//! 1. a member that publishes data writes its cell k mod d, and then the number ([`Cells::show`]);
//!    before that it checks that all members have finished operation k - d,
//!    which used the cell before ([`Cells::has_room`]);
//! 2. a member that needs the data waits for the number and reads the cell ([`Cells::seen`],
//!    [`Cells::read`]);
//! 3. a member that has finished publishes the number up to which it has finished all operations,
//!    in its own cache line ([`Cells::finish`]).
//!
//! Besides the members' cells, each operation has one more cell, for a result that one member computes for all.
//! A count of arrivals in front of the result's cell selects that member ([`Cells::arrive`]):
//! it is the last member to arrive. It resets the count before any member continues.
//! The result may be longer than the members' data, so its cell may be in another ring.
//! The operation has space if both rings have space.
//!
//! If an operation needs the previous operation's result, a member need not wait for it:
//! the member fills its cell with its own contribution and offers the cell ([`Cells::offer`]).
//! The member that claims the offer ([`Cells::claim`]) combines in place and publishes the cell
//! for its owner. Offers are in the line of the member's word of finished operations,
//! after the 64 bytes that are fetched with that word:
//! they are polled in every operation and rarely written.
//!
//! SYNC POINT `cells.shown`: the number is stored (Release) after the data,
//! and loaded (Acquire) before them.
//! SYNC POINT `cells.counted`: the count is stored (Release) after the work that it counts,
//! and loaded (Acquire) by a member that waits for that work.
//! SYNC POINT `cells.finished`: a member's word is stored (Release) after all of its reads,
//! and loaded (Acquire) before a cell is reused.
//! SYNC POINT `cells.offered`: an offer is stored (Release) after the cell is filled, and claimed
//! (Acquire) before the cell is modified.
//! A member that offers executes a fence and then polls again for the data that it waits for.
//! A member that may claim executes a fence between publishing its data and polling for offers.
//! So at least one of the two sees the other's store, and if both do,
//! only one of them gets the claim.
//! SYNC POINT `cells.arrivals`: each arrival (AcqRel) follows the member's publish. The member that
//! completes the count, or loads the complete count, sees the data of all members.
//!
//! The cells of one operation are contiguous,
//! so a member that reads all of them accesses few pages:
//! after a context switch, the first access to each page is expensive.
//!
//! A line that another core has read costs a round trip before it can be written,
//! so a member that has published its data prefetches the line of its next number at once
//! ([`Prefetch::next`]), while no member polls that line.
//! A waiting member polls the line of the number,
//! so each pause of the writer within that line costs a round trip, too:
//! for longer data, that line is written last, with the number ([`lay`]).

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

/// Distance in bytes between data of different members:
/// two cache lines, because processors fetch lines in pairs.
pub const LINE: usize = 128;

const WORD: usize = size_of::<u64>();

/// Size of a cache line in bytes, the unit of transfer between cores.
const FETCHED: usize = 64;

/// Number of bytes of data in the same cache line as the number.
const FIRST: usize = FETCHED - WORD;

/// Number of bits of the word that have the data length (the low ones). The other 47 bits are an
/// operation counter that takes months to overflow.
const LENGTH_BITS: u32 = 17;

/// Maximum of the encoded length. The encoding is length + 1,
/// or 0 if the writer publishes no length;
/// longer data have this maximum.
const LONGEST_TOLD: u64 = (1 << LENGTH_BITS) - 1;

/// Maximum length that [`Cells::published`] returns.
pub const LONGEST_PUBLISHED: usize = LONGEST_TOLD as usize - 1;

#[inline(always)]
fn told(bytes: usize) -> u64 {
    (bytes as u64 + 1).min(LONGEST_TOLD)
}

/// Maximum number of consecutive operations in which a member may have an offer at the same time.
pub const OFFERS: u64 = 4;

/// Number of words in a line.
const STEP: usize = LINE / WORD;

/// One member's view of the cells in `M`, whose words are initially zero.
pub struct Cells<M> {
    /// The shared words: a line for the number of waiters, a line for each member's word,
    /// and the rings.
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
    /// `None` if the numbers are not valid.
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

    /// Returns the counter of members that wait until others have finished.
    /// It is not part of the protocol above, and this module does not access it.
    pub fn waiters(&self) -> &AtomicU64 {
        &self.words[0]
    }

    fn word_of(&self, member: u32) -> &AtomicU64 {
        &self.words[(1 + member as usize) * STEP]
    }

    /// Returns the index of the word that counts arrivals,
    /// between the members' cells and the result's cell.
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

    /// Returns the word with the cell's operation number.
    #[inline(always)]
    fn flag(&self, cell: impl Into<CellOf>, address: CellAddress<'_>) -> &AtomicU64 {
        &self.words[self.cell(cell, address).0]
    }

    /// Returns the words of the cell's data.
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

    /// Polls the words of all members; returns the number up to which the slowest member has
    /// finished.
    #[cold]
    fn look_round(&self) -> u64 {
        // SYNC POINT cells.finished
        let finished = |member| self.word_of(member).load(Ordering::Acquire);
        let slowest = (0..self.members).map(finished).min().unwrap_or(0);
        self.all_past(slowest);
        slowest
    }

    /// Returns true if a member has finished this operation and all earlier ones.
    #[inline(always)]
    pub fn has_finished(&self, member: u32, number: u64) -> bool {
        // SYNC POINT cells.finished
        self.word_of(member).load(Ordering::Acquire) >= number
    }

    /// Writes and publishes data in a cell of an operation.
    /// The caller is the cell's writer and has checked that the operation has space.
    #[inline(always)]
    pub fn show(&self, cell: impl Into<CellOf> + Copy, address: CellAddress<'_>, data: &[u8]) {
        self.fill(cell, address, 0, data);
        self.publish(cell, address);
    }

    /// Writes data from byte `at` on into a cell of an operation that has space.
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

    /// Compares the published length of seen data with `expected`.
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

    /// Returns the published length of seen data:
    /// at most [`LONGEST_PUBLISHED`], and 0 if the writer published no length.
    #[inline(always)]
    pub fn published(&self, cell: impl Into<CellOf> + Copy, address: CellAddress<'_>) -> usize {
        let flag = self.flag(cell, address).load(Ordering::Relaxed) & LONGEST_TOLD;
        (flag as usize).saturating_sub(1)
    }

    /// Sets this member's count in an operation, which replaces the data.
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

    /// Returns the prefetches of this member.
    #[inline(always)]
    pub fn prefetch(&self) -> Prefetch<'_, M> {
        Prefetch(self)
    }

    /// Returns true if the data of an operation have been published in a cell.
    #[inline(always)]
    pub fn seen(&self, cell: impl Into<CellOf> + Copy, address: CellAddress<'_>) -> bool {
        self.watch(cell, address)()
    }

    /// Returns [`Cells::seen`] as a closure for polling.
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

    /// Copies data that member `from` has published to byte `to` of the result.
    /// The member that will publish the result calls this.
    pub fn pass_on(&self, address: CellAddress<'_>, from: u32, bytes: Range<usize>, to: usize) {
        self.inspect(from, address, bytes, |data| {
            self.fill(CellOf::Result, address, to, data)
        });
    }

    /// Counts this member's arrival at an operation, after it has published its data.
    /// Returns true for the last member to arrive.
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

    /// Resets the arrivals of an operation; only the member that continued because all had arrived
    /// calls this.
    /// The result or the finished number that this member publishes next orders the reset for
    /// other members.
    #[inline(always)]
    pub fn forget_arrivals(&self, address: CellAddress<'_>) {
        self.arrivals(address).store(0, Ordering::Relaxed);
    }

    /// Returns the word of a member's offer for an operation.
    #[inline(always)]
    fn offer_of(&self, member: u32, number: u64) -> &AtomicU64 {
        let behind = FETCHED / WORD + (number % OFFERS) as usize;
        &self.words[(1 + member as usize) * STEP + behind]
    }

    /// Offers this member's filled cell of an operation, and executes a fence,
    /// which orders later reads after the offer.
    pub fn offer(&self, address: CellAddress<'_>) {
        // SYNC POINT cells.offered
        self.offer_of(self.me, address.number)
            .store(address.number, Ordering::Release);
        fence(Ordering::SeqCst);
    }

    /// Claims a member's offer; returns true if there was an unclaimed offer.
    /// The claiming member completes and publishes the cell.
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

    /// As [`Cells::finish`], if earlier operations are still in progress or later ones have
    /// finished.
    ///
    /// The function ends with a fence: an operation that ended with a fence may become visible
    /// only now, after an earlier operation without a fence has ended.
    /// Operations that finish out of order use rings of at most [`DEEPEST_UNORDERED`],
    /// so one word has enough bits for all operations after an unfinished one.
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
