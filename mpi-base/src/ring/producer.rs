//! The writing end of a ring.
#![allow(unsafe_code)]

use super::room::Room;
use super::{Control, INLINE, Kind, MAX_LEN, MORE, RingMemory, SPREAD, UNIT, more_cells, units_of};
use crate::atomic::{AtomicU64, Ordering};
use crate::copy::copy;

/// The ring has no room now; nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// How many cells before it is written [`Producer::expect_next`] asks for one.
///
/// Measured with 0, 1, 2, 4, 8 in streams between two threads, nanoseconds for each message: of 8 bytes 9.2, 9.0, 8.6, 8.4, 8.4, of 64 bytes 19.8, 19.6, 17.2, 16.4, 16.2;
/// and in moments in which the machine's cores are slow to reach each other, 46, 32, 37, 29, 29 and 100, 99, 64, 89, 46.
const AHEAD: u32 = 8;

/// The only writer of a ring.
#[derive(Debug)]
pub struct Producer {
    memory: RingMemory,
    /// The number of the next cell.
    pub(super) next: u32,
    /// Which cells the consumer had given back when we last looked.
    pub(super) consumed: u32,
    room: Room,
    /// How much of the byte ring the consumer wanted used when we last looked.
    wish: u64,
    /// From where on in the byte ring it is tried to begin again at its start.
    again_from: u32,
    /// Up to which unit the byte ring has memory for sure.
    populated: u32,
    /// How many further cells the last message took.
    more: u32,
    /// Before which cell the consumer was last asked for room ahead of need.
    asked: u32,
    longest: usize,
    /// The consumer has said what no consumer of ours says.
    broken: bool,
}

impl Producer {
    /// The producer of a fresh ring.
    ///
    /// # Safety
    /// It must be the only producer this memory ever has.
    pub unsafe fn new(memory: RingMemory) -> Producer {
        let longest = memory.shape().longest();
        Producer {
            next: 1,
            consumed: 0,
            room: Room::new(memory.shape().units()),
            wish: 0,
            again_from: memory.shape().lap(),
            populated: 0,
            more: 0,
            asked: 0,
            memory,
            longest,
            broken: false,
        }
    }

    /// The longest payload that [`Producer::push`] takes.
    #[inline(always)]
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// Uses no more than the first `bytes` of the byte ring, until the consumer wishes something else.
    pub fn set_span(&mut self, bytes: usize) {
        self.wants(units_of(bytes.min(self.memory.shape().bytes())));
    }

    /// Uses so many units from now on; less than a lap would not be worth it.
    fn wants(&mut self, span: u32) {
        let shape = self.memory.shape();
        self.room.set_span(span.max(shape.lap()).min(shape.units()));
    }

    /// Sends a message of at most [`Producer::longest`] bytes, which `fill` writes into the place it is given.
    ///
    /// A longer payload is answered with [`Full`], since it never fits.
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
        let (start, units) = (self.room.start(kind), units_of(len));
        if start + units > self.populated {
            self.populate(start + units);
        }
        // SAFETY: `block` found it inside the ring and given back by the consumer.
        unsafe { self.memory.write(start as usize * UNIT, len, fill) };
        if kind == Kind::BytesAtStart {
            self.again_from = self.memory.shape().lap();
        }
        self.room.take(kind, units);
        self.publish(am, kind, len, header, &[]);
        self.expect_block(len);
        Ok(())
    }

    /// Sends a message of exactly one payload word, the commonest small message.
    #[inline]
    pub fn push_word(&mut self, am: u8, header: [u64; 2], word: u64) -> Result<(), Full> {
        if !self.has_cell() {
            return Err(Full);
        }
        self.publish(am, Kind::Inline, 8, header, &word.to_ne_bytes());
        Ok(())
    }

    /// Sends a payload that lies in memory, as [`Producer::push`] does; a short one goes from there straight into cells.
    #[inline]
    pub fn push_bytes(&mut self, am: u8, header: [u64; 2], bytes: &[u8]) -> Result<(), Full> {
        match bytes.len() {
            ..=SPREAD => self.spread(am, header, bytes),
            len => self.push(am, header, len, |place| copy(bytes, place)),
        }
    }

    /// Sends a message whose `len` bytes of payload lie where `token` says.
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

    /// Sends a payload of at most [`SPREAD`] bytes in neighbouring cells; the first is written last.
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

    /// Fetches cells that will be written soon, for a sender that sends one message after another;
    /// in a dialogue it would take them away from the consumer, which looks at the first of them, as it would those that the consumer has still to read.
    #[inline(always)]
    pub fn expect_next(&mut self) {
        let each = 1 + self.more;
        if self.owns_cells(AHEAD + each) {
            self.memory
                .expect_cells(self.next.wrapping_add(AHEAD), each);
        }
    }

    /// Whether so many cells are the producer's; the consumer, which may have given more back, is not asked often, because that costs both a trip.
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

    /// Whether a message of one cell would find room now.
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

    /// Cells written that the consumer had not given back when it was last looked at.
    #[inline(always)]
    fn used(&self) -> u32 {
        self.next.wrapping_sub(1).wrapping_sub(self.consumed)
    }

    /// Whether a payload of `len` bytes would find room now.
    pub fn has_room(&mut self, len: usize) -> bool {
        if len <= SPREAD {
            return self.has_cells(1 + more_cells(len));
        }
        self.has_cell() && len <= self.longest && self.block(len).is_some()
    }

    /// Fetches what a message like the last one will probably be written to.
    #[inline(always)]
    fn expect_block(&self, len: usize) {
        let start = match self.room.next() >= self.again_from {
            true => {
                self.memory.expect_given_back();
                0
            }
            false => self.room.next() as usize * UNIT,
        };
        self.memory.expect_block(start, len);
    }

    /// Where a block of `len` bytes can lie now.
    #[inline(always)]
    fn block(&mut self, len: usize) -> Option<Kind> {
        if self.room.next() >= self.again_from && self.may_restart() {
            return Some(Kind::BytesAtStart);
        }
        let units = units_of(len);
        let found = self.room.find(units);
        if found.is_some() {
            return found;
        }
        self.look();
        self.room.find(units)
    }

    /// Sees to it that there is memory for the first lap, and when that is left for all that is used.
    #[cold]
    fn populate(&mut self, needed: u32) {
        let lap = self.memory.shape().lap();
        let to = match self.populated {
            0 => lap,
            _ => self.room.span(),
        };
        let to = to.max(needed);
        self.memory.populate(self.populated, to);
        self.populated = to;
    }

    /// Whether the consumer has given all blocks back; if not, it is not asked again soon, because each look at its word costs both a trip.
    #[cold]
    fn may_restart(&mut self) -> bool {
        self.look();
        let drained = self.room.is_drained();
        let lap = self.memory.shape().lap();
        self.again_from = match drained {
            true => lap,
            false => self.room.next() + lap.div_ceil(4),
        };
        drained
    }

    /// Whether the consumer has said what no consumer of ours says; what has been believed so far is kept, and nothing more is.
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    /// Whether everything sent has been consumed.
    pub fn is_drained(&mut self) -> bool {
        self.look();
        self.next.wrapping_sub(1) == self.consumed
    }

    #[inline(never)]
    fn look(&mut self) {
        // SYNC POINT ring.consumed
        let back = self.memory.given_back().consumed.load(Ordering::Acquire);
        let (consumed, units) = (back as u32, (back >> 32) as u32);
        if consumed.wrapping_sub(self.consumed) > self.used() || !self.room.may_give_back(units) {
            // More than was written, or less than it has said before.
            self.broken = true;
            return;
        }
        self.consumed = consumed;
        self.room.given_back(units);
        let wish = self.memory.given_back().span.load(Ordering::Relaxed);
        if wish != self.wish {
            self.wish = wish;
            self.wants(u32::try_from(wish).unwrap_or(u32::MAX));
        }
    }

    /// Writes the next cell, with what of the payload is in it.
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

/// Writes bytes into words; behind the last byte its word has zeroes.
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
