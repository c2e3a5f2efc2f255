//! The writing end of a ring.
#![allow(unsafe_code)]

use super::lap_space::LapSpace;
use super::{
    Control, INLINE, Kind, LAP, MAX_LEN, MORE, RingMemory, SPREAD, UNIT, more_cells, units_of,
};
use crate::atomic::{AtomicU64, Ordering};
use crate::copy::copy;

/// The error if the ring has not enough free space now; nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// Distance in cells from the next cell to the cell that [`Producer::expect_next`] prefetches.
///
/// Measured with the distances 0, 1, 2, 4 and 8 in streams between two threads, in ns per message:
/// 9.2, 9.0, 8.6, 8.4 and 8.4 for 8 bytes; 19.8, 19.6, 17.2, 16.4 and 16.2 for 64 bytes.
/// When transfers between the cores were slow, for 8 bytes: 46, 32, 37, 29 and 29; for 64 bytes:
/// 100, 99, 64, 89 and 46.
const AHEAD: u32 = 8;

/// Number of units that are populated together when a message needs the first of them (16 KiB).
/// A new page takes 0.3 to 5 us, and the consumer waits in this time.
const AT_ONCE: u32 = (16 << 10) / UNIT as u32;

/// Number of units of the longest block that may open more of a span in which the consumer lags:
/// 8 KiB, the longest eager message of shared memory. Longer blocks are fragments.
const SHORT: u32 = (8 << 10) / UNIT as u32;

/// Number of units of blocks after which units for later laps are populated, while the consumer
/// reads the last block: a page in a dialogue, and the number of written units in a stream.
const PERIOD: u32 = (32 << 10) / UNIT as u32;
const PAGE: u32 = (4 << 10) / UNIT as u32;

/// Number of units that a waiting process populates together (16 KiB, which delays a message that
/// arrives during this time by 1 to 2 us).
const AHEAD_OF_USE: u32 = (16 << 10) / UNIT as u32;

/// The only writer of a ring.
#[derive(Debug)]
pub struct Producer {
    memory: RingMemory,
    /// The sequence number of the next cell.
    pub(super) next: u32,
    /// The number of cells that the consumer had released when its counts were last polled.
    pub(super) consumed: u32,
    /// The span of this lap space is the open part of the span: the units that were populated at
    /// the start of the lap, and more if the consumer lags.
    lap_space: LapSpace,
    /// The span in units.
    span: u32,
    /// The span in units that the consumer had requested when its words were last polled.
    wish: u64,
    /// Number of units (a lap) after which the producer tries to restart at the start.
    lap: u32,
    /// The offset in units from which on the producer tries to restart; more after a failed try.
    again_from: u32,
    /// The number of units from the start of the byte ring that are populated.
    pub(super) populated: u32,
    /// Number of units written since pages were last populated for a later lap.
    since: u32,
    /// Number of units written since the sender last polled for messages, while the span has
    /// pages that are not populated.
    run: u32,
    /// Number of cells after the first cell of the last message.
    more: u32,
    /// The sequence number of the cell at which the consumer's counts were last polled in advance.
    asked: u32,
    longest: usize,
    /// True if the consumer has published invalid counts; see [`Producer::is_broken`].
    broken: bool,
}

impl Producer {
    /// Creates the producer of a new, zeroed ring.
    ///
    /// # Safety
    /// The result must be the only producer that this memory ever has.
    pub unsafe fn new(memory: RingMemory) -> Producer {
        let shape = memory.shape();
        let lap = shape.lap(shape.units());
        let mut producer = Producer {
            next: 1,
            consumed: 0,
            lap_space: LapSpace::new(LAP.min(shape.units())),
            span: shape.units(),
            wish: 0,
            lap,
            again_from: lap,
            populated: 0,
            since: 0,
            run: 0,
            more: 0,
            asked: 0,
            longest: shape.longest(),
            memory,
            broken: false,
        };
        producer.open_populated();
        producer
    }

    /// Returns the maximum payload length in bytes that [`Producer::push`] accepts.
    #[inline(always)]
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// Limits the byte ring to its first `bytes` bytes, until the consumer requests another limit.
    pub fn set_span(&mut self, bytes: usize) {
        self.wants(units_of(bytes.min(self.memory.shape().bytes())));
    }

    /// Limits the byte ring to its first `span` units from now on.
    fn wants(&mut self, span: u32) {
        let shape = self.memory.shape();
        let span = span.max(shape.least_span()).min(shape.units());
        self.span = span;
        self.lap = shape.lap(span);
        self.open_populated();
        self.again_from = self.lap;
    }

    /// Populates the first `bytes` bytes of the span, before the first message.
    pub fn populate_first(&mut self, bytes: usize) {
        let first = units_of(bytes.min(self.memory.shape().bytes())).min(self.span);
        if first > self.populated {
            self.populate_to(first);
            self.open_populated();
        }
    }

    /// Opens all populated units of a span that is used cyclically, and at least a `LAP`,
    /// or the whole of another span.
    ///
    /// A lap of populated units causes no page fault.
    fn open_populated(&mut self) {
        let open = match self.is_cycled() {
            true => self.populated.max(LAP).max(self.lap_space.span()),
            false => self.span,
        };
        self.lap_space.set_span(open.min(self.span));
    }

    /// Returns true if the whole span is used cyclically, even if the consumer keeps up.
    fn is_cycled(&self) -> bool {
        self.lap >= self.span
    }

    /// Populates units of a span that is used cyclically for later laps, in proportion to the
    /// `units` that were just published.
    ///
    /// In a stream of short blocks, the sender writes more than a `LAP` without polling for
    /// messages. The consumer does not wait for it, so the producer populates as much as it writes.
    #[cold]
    fn populate_in_proportion(&mut self, units: u32) {
        if !self.is_cycled() {
            return;
        }
        self.run = self.run.saturating_add(units);
        self.since += units;
        let periods = self.since / PERIOD;
        if periods == 0 {
            return;
        }
        self.since %= PERIOD;
        let is_stream = units <= SHORT && self.run > LAP;
        let each = if is_stream { PERIOD } else { PAGE };
        let to = (self.populated + periods * each).min(self.span);
        if to > self.populated {
            self.populate_to(to);
        }
    }

    /// Populates the next pages of the span, if a message has already used the byte ring.
    /// Returns false if all pages are populated.
    ///
    /// A process that has no other work calls this, so that later messages cause no page faults.
    pub fn populate_ahead(&mut self) -> bool {
        let is_used = self.lap_space.next() > 0;
        let is_due = is_used && self.populated < self.span;
        if is_due {
            self.populate_to((self.populated + AHEAD_OF_USE).min(self.span));
        }
        is_due
    }

    /// Sends a message of at most [`Producer::longest`] bytes;
    /// `fill` writes the payload into the slice that it receives.
    ///
    /// Also returns [`Full`] for a longer payload, although it never fits.
    #[inline]
    pub fn push(
        &mut self,
        am: u8,
        header: [u64; 2],
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<(), Full> {
        if !self.has_cell() {
            return Err(Full);
        }
        if len <= INLINE {
            let mut payload = [0; INLINE];
            fill(&mut payload[..len]);
            return self.spread(am, header, &payload[..len]);
        }
        if len <= SPREAD {
            let mut payload = [0; SPREAD];
            fill(&mut payload[..len]);
            return self.spread(am, header, &payload[..len]);
        }
        if len > self.longest {
            return Err(Full);
        }
        let kind = self.block(len).ok_or(Full)?;
        let (start, units) = (self.lap_space.start(kind), units_of(len));
        if start + units > self.populated {
            self.populate(start + units);
        }
        // SAFETY: `block` found the range inside the ring,
        // and free or released by the consumer (SYNC POINT ring.consumed), so the producer owns it.
        unsafe { self.memory.write(start as usize * UNIT, len, fill) };
        if kind == Kind::BytesAtStart {
            self.again_from = self.lap;
            if self.lap_space.span() < self.span {
                self.open_populated();
            }
        }
        self.lap_space.take(kind, units);
        self.publish(am, kind, len, header, &[]);
        if self.populated < self.span {
            self.populate_in_proportion(units);
        }
        self.expect_block(len);
        Ok(())
    }

    /// Sends a message with exactly one payload word, the most frequent small message.
    #[inline]
    pub fn push_word(&mut self, am: u8, header: [u64; 2], word: u64) -> Result<(), Full> {
        if !self.has_cell() {
            return Err(Full);
        }
        self.publish(am, Kind::Inline, 8, header, &word.to_ne_bytes());
        Ok(())
    }

    /// Sends a payload from memory, like [`Producer::push`];
    /// a short payload is copied directly into cells.
    #[inline]
    pub fn push_bytes(&mut self, am: u8, header: [u64; 2], bytes: &[u8]) -> Result<(), Full> {
        match bytes.len() {
            ..=SPREAD => self.spread(am, header, bytes),
            len => self.push(am, header, len, |place| copy(bytes, place)),
        }
    }

    /// Sends a message whose payload of `len` bytes is at the location that `token` identifies.
    #[inline]
    pub fn push_elsewhere(
        &mut self,
        am: u8,
        header: [u64; 2],
        len: usize,
        token: u64,
    ) -> Result<(), Full> {
        if len > MAX_LEN || !self.has_cell() {
            return Err(Full);
        }
        self.publish(am, Kind::Elsewhere, len, header, &token.to_ne_bytes());
        Ok(())
    }

    /// Sends a payload of at most [`SPREAD`] bytes in consecutive cells;
    /// the first cell is written last.
    #[inline(always)]
    fn spread(&mut self, am: u8, header: [u64; 2], payload: &[u8]) -> Result<(), Full> {
        let len = payload.len();
        let more = more_cells(len);
        if !self.has_cells(1 + more) {
            return Err(Full);
        }
        let first = self.next;
        let (here, rest) = payload.split_at(len.min(INLINE));
        for (i, part) in (1..=more).zip(rest.chunks(MORE)) {
            let seq = first.wrapping_add(i);
            let words = &self.memory.cell(seq).words;
            words[0].store(u64::from(seq), Ordering::Relaxed);
            store(&words[1..], part);
        }
        self.publish(am, Kind::Inline, len, header, here);
        self.next = first.wrapping_add(1 + more);
        self.more = more;
        self.memory.expect_cells(self.next.wrapping_add(1), more);
        Ok(())
    }

    /// Prefetches for writing the cells that will be used soon,
    /// for the sender of a stream of messages.
    /// In a ping-pong the prefetch would take cells from the consumer, which polls the first one.
    /// Cells that the consumer has not yet read are not prefetched.
    #[inline(always)]
    pub fn expect_next(&mut self) {
        let each = 1 + self.more;
        if self.owns_cells(AHEAD + each) {
            self.memory
                .expect_cells(self.next.wrapping_add(AHEAD), each);
        }
    }

    /// Begins a run: the sender has polled for messages since its last message.
    #[inline(always)]
    pub fn begin_run(&mut self) {
        self.run = 0;
    }

    /// Returns true if the producer owns `count` cells.
    /// The consumer may have released more cells, but its counts are polled rarely,
    /// because each poll costs both sides a round trip.
    #[inline(always)]
    fn owns_cells(&mut self, count: u32) -> bool {
        if self.used() + count <= self.memory.shape().cells() {
            return true;
        }
        let soon = self.memory.shape().cells() / 8;
        if self.next.wrapping_sub(self.asked) < soon {
            return false;
        }
        self.asked = self.next;
        self.has_cells(count)
    }

    /// Returns true if a message of one cell fits now.
    #[inline(always)]
    pub fn has_cell(&mut self) -> bool {
        self.has_cells(1)
    }

    #[inline(always)]
    fn has_cells(&mut self, count: u32) -> bool {
        let cells = self.memory.shape().cells();
        if self.used() + count <= cells {
            return true;
        }
        self.look();
        self.used() + count <= cells
    }

    /// Returns the number of written cells that had not been released at the last poll.
    #[inline(always)]
    fn used(&self) -> u32 {
        self.next.wrapping_sub(1).wrapping_sub(self.consumed)
    }

    /// Returns true if a payload of `len` bytes fits now.
    pub fn has_room(&mut self, len: usize) -> bool {
        if len <= SPREAD {
            return self.has_cells(1 + more_cells(len));
        }
        self.has_cell() && len <= self.longest && self.block(len).is_some()
    }

    /// Prefetches the block that a message as long as the last one will probably use.
    #[inline(always)]
    fn expect_block(&self, len: usize) {
        let start = match self.lap_space.next() >= self.again_from {
            true => {
                self.memory.expect_given_back();
                0
            }
            false => self.lap_space.next() as usize * UNIT,
        };
        self.memory.expect_block(start, len);
    }

    /// Returns the position for a block of `len` bytes; `None` if there is no space.
    #[inline(always)]
    fn block(&mut self, len: usize) -> Option<Kind> {
        if self.lap_space.next() >= self.again_from && self.may_restart() {
            return Some(Kind::BytesAtStart);
        }
        let units = units_of(len);
        if self.lap_space.span() < self.span {
            return self.block_of_open_part(units);
        }
        let found = self.lap_space.find(units);
        if found.is_some() {
            return found;
        }
        self.look();
        self.lap_space.find(units)
    }

    /// Returns the position for a block while only a part of the span is open.
    ///
    /// If the consumer keeps up, the next lap begins at the end of the open part.
    /// If it lags, short blocks open more of the span, so that the sender can send ahead.
    /// Long blocks wait instead: that takes less time than new pages for them.
    #[cold]
    fn block_of_open_part(&mut self, units: u32) -> Option<Kind> {
        /// Number of unread blocks from which on the consumer lags.
        const LAG: u32 = 3;
        let end = self.lap_space.next() + units;
        if end <= self.lap_space.span()
            && let found @ Some(_) = self.lap_space.find(units)
        {
            return found;
        }
        self.look();
        let found = self.lap_space.find(units);
        let lags = self.lap_space.unread() >= LAG * units;
        let is_ahead_of_consumer = self.lap_space.unread() <= self.lap_space.next();
        let may_open = is_ahead_of_consumer && end <= self.span;
        let opens = match found {
            Some(Kind::BytesAtStart) => lags && units <= SHORT,
            Some(_) => false,
            None => units <= SHORT || !lags,
        };
        if may_open && opens {
            self.lap_space.set_span(end.max(self.lap_space.span()));
            return Some(Kind::Bytes);
        }
        found
    }

    /// Populates the units up to `needed` and some more:
    /// one page at a time would cost a page fault per page,
    /// and the whole span would delay this message by a millisecond.
    #[cold]
    fn populate(&mut self, needed: u32) {
        let some = (self.populated + AT_ONCE).min(self.span);
        self.populate_to(some.max(needed));
    }

    fn populate_to(&mut self, to: u32) {
        self.memory.populate(self.populated, to);
        self.populated = to;
    }

    /// Returns true if the consumer has released all blocks.
    /// If not, the consumer's counts are not polled again soon,
    /// because each poll costs both sides a round trip.
    #[cold]
    fn may_restart(&mut self) -> bool {
        self.look();
        let drained = self.lap_space.is_drained();
        self.again_from = match drained {
            true => self.lap,
            false => self.lap_space.next() + self.lap.div_ceil(4),
        };
        drained
    }

    /// Returns true if the consumer has published counts that no correct consumer publishes.
    /// The last valid counts stay in use, and later counts are ignored.
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    /// Returns true if the consumer has released everything that was sent.
    pub fn is_drained(&mut self) -> bool {
        self.look();
        self.next.wrapping_sub(1) == self.consumed
    }

    #[inline(never)]
    fn look(&mut self) {
        // SYNC POINT ring.consumed
        let back = self.memory.given_back().consumed.load(Ordering::Acquire);
        let (consumed, units) = (back as u32, (back >> 32) as u32);
        if consumed.wrapping_sub(self.consumed) > self.used()
            || !self.lap_space.may_give_back(units)
        {
            // The consumer's count exceeds what was written,
            // or is less than its previous count.
            self.broken = true;
            return;
        }
        self.consumed = consumed;
        self.lap_space.given_back(units);
        let wish = self.memory.given_back().span.load(Ordering::Relaxed);
        if wish != self.wish {
            self.wish = wish;
            self.wants(u32::try_from(wish).unwrap_or(u32::MAX));
        }
    }

    /// Writes the next cell with the payload bytes `here`, and publishes it.
    #[inline(always)]
    fn publish(&mut self, am: u8, kind: Kind, len: usize, header: [u64; 2], here: &[u8]) {
        let seq = self.next;
        self.more = 0;
        let words = &self.memory.cell(seq).words;
        words[1].store(header[0], Ordering::Relaxed);
        words[2].store(header[1], Ordering::Relaxed);
        store(&words[3..], here);
        let control = Control { seq, am, kind, len };
        // SYNC POINT ring.cell
        words[0].store(control.pack(), Ordering::Release);
        self.next = seq.wrapping_add(1);
    }
}

/// Writes bytes into words; the last word is padded with zeroes.
#[inline(always)]
fn store(words: &[AtomicU64], bytes: &[u8]) {
    let (whole, rest) = bytes.as_chunks::<8>();
    for (to, from) in words.iter().zip(whole) {
        to.store(u64::from_ne_bytes(*from), Ordering::Relaxed);
    }
    if !rest.is_empty()
        && let Some(last) = words.get(whole.len())
    {
        let mut word = [0; 8];
        for (to, from) in word.iter_mut().zip(rest) {
            *to = *from;
        }
        last.store(u64::from_ne_bytes(word), Ordering::Relaxed);
    }
}
