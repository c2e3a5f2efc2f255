//! The reading end of a ring.
#![allow(unsafe_code)]

use super::{
    Control, GIVE_BACK, INLINE, INLINE_WORDS, Kind, MORE_WORDS, RingMemory, SPREAD, SPREAD_WORDS,
    Shape, UNIT, more_cells, units_of,
};
use crate::atomic::Ordering;
use std::mem::MaybeUninit;

/// A message as passed to the closure of [`Consumer::pop`]; valid only during that call.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// The active-message ID, which selects the receiver's handler; the ring does not interpret it.
    pub am: u8,
    /// Two header words from the message's first cell; the ring does not interpret them.
    pub header: [u64; 2],
    /// The payload; at most [`MAX_LEN`](super::MAX_LEN) bytes long.
    pub body: Body<'a>,
}

/// A message's payload.
#[derive(Clone, Copy, Debug)]
pub enum Body<'a> {
    /// The bytes of the payload. A short payload is a copy from the cells.
    /// A long payload is a reference into shared memory, which a faulty producer could still change.
    Here(&'a [u8]),
    /// `len` bytes at the location that `token` identifies; both come from the sender, so check them.
    Elsewhere {
        /// Identifies the location, usually a pooled fragment of the sender; see [`Node::read_frag`](crate::node::Node::read_frag).
        token: u64,
        /// Length of the payload in bytes.
        len: usize,
    },
}

/// The result of polling the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Polled<R> {
    /// The next cell has not been written yet, or the ring was already broken.
    Empty,
    /// One message was passed to the closure; the value is the result of the closure.
    Got(R),
    /// The cell has a value that no correct producer writes; the ring is broken from now on.
    Broken,
}

/// Distance in cells from the next cell to the cell that [`Consumer::await_more`] prefetches.
///
/// In a stream the producer has already written that cell. A prefetch of a nearer cell would be too
/// late, and a cell further ahead may still be in use by the producer.
const AHEAD: u32 = 2;

/// The only reader of a ring.
#[derive(Debug)]
pub struct Consumer {
    memory: RingMemory,
    /// The sequence number of the cell expected next.
    pub(super) next: u32,
    /// Number of units of the byte ring read since the start.
    /// `at` is the offset of the next block if that block follows the last block.
    units: u32,
    at: u32,
    /// Number of cells published as released; `units_published` is the same for units.
    pub(super) published: u32,
    units_published: u32,
    /// If this number of cells is unpublished, `pop` publishes them without a call of `give_back`;
    /// `many_units` is the same for units.
    many_cells: u32,
    many_units: u32,
    broken: bool,
    /// Number of cells that followed the first cell of the last message.
    more: u32,
}

impl Consumer {
    /// Creates the consumer of a new, zeroed ring.
    ///
    /// # Safety
    /// The result must be the only consumer that this memory ever has.
    pub unsafe fn new(memory: RingMemory) -> Consumer {
        let shape = memory.shape();
        Consumer {
            memory,
            many_cells: shape.cells() / 4,
            many_units: GIVE_BACK.min(shape.units() / 4),
            next: 1,
            units: 0,
            at: 0,
            published: 0,
            units_published: 0,
            broken: false,
            more: 0,
        }
    }

    /// Returns true if a message has arrived.
    #[inline(always)]
    pub fn is_ready(&self) -> bool {
        let word = self.memory.cell(self.next).words[0].load(Ordering::Relaxed);
        word as u32 == self.next && !self.broken
    }

    /// Returns true if the next cell has a value that no correct producer writes.
    /// Its sequence number belongs neither to the next message nor to the one a lap earlier.
    ///
    /// The consumer would wait indefinitely for such a cell,
    /// so a process checks this before it sleeps.
    pub fn is_odd(&self) -> bool {
        let seq = self.memory.cell(self.next).words[0].load(Ordering::Relaxed) as u32;
        let before = self.next.wrapping_sub(self.memory.shape().cells());
        let first_lap = self.next <= self.memory.shape().cells();
        let usual = seq == self.next || seq == before || (seq == 0 && first_lap);
        !usual && !self.broken
    }

    /// Returns true if a message has arrived. Otherwise, for a message as long as the last one,
    /// prefetches the cells that follow the first cell,
    /// so that the transfers of these cells overlap.
    #[inline(always)]
    pub fn is_ready_or_await(&self) -> bool {
        let ready = self.is_ready();
        if !ready && self.more > 0 {
            self.memory
                .await_cells(self.next.wrapping_add(1), self.more);
        }
        ready
    }

    /// Prefetches a later cell, for a consumer that receives a stream of messages.
    /// In a ping-pong the prefetch would take the cell from the producer, which writes it next.
    #[inline(always)]
    pub fn await_more(&self) {
        self.memory.await_cells(self.next.wrapping_add(AHEAD), 1);
    }

    /// Stops reading from this ring permanently, because an invalid message was received from it.
    pub fn condemn(&mut self) {
        self.broken = true;
    }

    /// Returns true after the ring had a value that no correct producer writes.
    /// Also returns true after [`Consumer::condemn`].
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    /// Returns the ring's size.
    pub fn shape(&self) -> Shape {
        self.memory.shape()
    }

    /// Requests that the producer use only the first `bytes` bytes of the byte ring,
    /// as soon as the producer next polls the consumer's counts.
    pub fn wish_span(&mut self, bytes: usize) {
        let units = u64::from(units_of(bytes.min(self.shape().bytes())));
        // Relaxed suffices: for every span, a bit of the control word marks the start of each lap.
        self.memory
            .given_back()
            .span
            .store(units, Ordering::Relaxed);
    }

    /// Calls `f` on the next message, if any; releases its cells and bytes now or in a later batch.
    #[inline]
    pub fn pop<R>(&mut self, f: impl FnOnce(Message<'_>) -> R) -> Polled<R> {
        let words = &self.memory.cell(self.next).words;
        // SYNC POINT ring.cell
        let word = words[0].load(Ordering::Acquire);
        if word as u32 != self.next || self.broken {
            return Polled::Empty;
        }
        let Some(control) = Control::unpack(word) else {
            self.broken = true;
            return Polled::Broken;
        };
        let header = [
            words[1].load(Ordering::Relaxed),
            words[2].load(Ordering::Relaxed),
        ];
        let am = control.am;
        let show = |body: Body<'_>| f(Message { am, header, body });
        let len = control.len;
        let mut more = 0;
        let result = match control.kind {
            Kind::Inline if len <= INLINE => {
                // The words are copied before `f` reads them, so `f` reads private memory.
                let payload: [u64; INLINE_WORDS] =
                    std::array::from_fn(|i| words[3 + i].load(Ordering::Relaxed));
                // SAFETY: `len <= INLINE`, which is the size of `payload`,
                // and all of `payload` is initialised.
                show(Body::Here(unsafe {
                    std::slice::from_raw_parts(payload.as_ptr().cast::<u8>(), len)
                }))
            }
            Kind::Inline if len <= SPREAD => {
                more = more_cells(len);
                let mut payload = [const { MaybeUninit::uninit() }; SPREAD_WORDS];
                self.gather(more, &mut payload);
                // SAFETY: `gather` has filled the words of this cell and of `more` further cells,
                // which contain at least `len` bytes.
                show(Body::Here(unsafe {
                    std::slice::from_raw_parts(payload.as_ptr().cast::<u8>(), len)
                }))
            }
            Kind::Bytes | Kind::BytesAtStart => {
                let Some(start) = self.block(control.kind, len) else {
                    self.broken = true;
                    return Polled::Broken;
                };
                // SAFETY: `block` has checked that the block is inside the ring.
                // With the cell, the producer passed the block to this consumer, until `give_back`.
                unsafe {
                    self.memory
                        .read(start, len, |bytes| show(Body::Here(bytes)))
                }
            }
            Kind::Elsewhere => show(Body::Elsewhere {
                token: words[3].load(Ordering::Relaxed),
                len,
            }),
            _ => {
                self.broken = true;
                return Polled::Broken;
            }
        };
        self.more = more;
        self.next = self.next.wrapping_add(1 + more);
        let (cells, units) = self.unpublished();
        if cells >= self.many_cells || units > self.many_units {
            self.give_back();
        }
        Polled::Got(result)
    }

    /// Returns the offset of a block in bytes; `None` if the block is not within the ring.
    #[inline(always)]
    fn block(&mut self, kind: Kind, len: usize) -> Option<usize> {
        let start = match kind {
            Kind::BytesAtStart => 0,
            _ => self.at,
        };
        let units = units_of(len);
        let inside =
            len <= self.memory.shape().longest() && start + units <= self.memory.shape().units();
        if !inside {
            return None;
        }
        self.at = start + units;
        self.units = self.units.wrapping_add(units);
        Some(start as usize * UNIT)
    }

    /// Copies the payload words of the next message, whose first cell is followed by `more` cells.
    #[inline(always)]
    fn gather(&self, more: u32, payload: &mut [MaybeUninit<u64>; SPREAD_WORDS]) {
        let (here, rest) = payload.split_at_mut(INLINE_WORDS);
        for (to, from) in here.iter_mut().zip(&self.memory.cell(self.next).words[3..]) {
            to.write(from.load(Ordering::Relaxed));
        }
        for (i, part) in (1..=more).zip(rest.chunks_exact_mut(MORE_WORDS)) {
            let words = &self.memory.cell(self.next.wrapping_add(i)).words;
            for (to, from) in part.iter_mut().zip(&words[1..]) {
                to.write(from.load(Ordering::Relaxed));
            }
        }
    }

    /// Releases all consumed cells and bytes to the producer.
    /// A process calls this when it has no other work.
    #[inline]
    pub fn give_back(&mut self) {
        if !self.owes_space() {
            return;
        }
        self.published = self.next.wrapping_sub(1);
        self.units_published = self.units;
        let back = u64::from(self.published) | u64::from(self.units_published) << 32;
        // SYNC POINT ring.consumed
        self.memory
            .given_back()
            .consumed
            .store(back, Ordering::Release);
    }

    /// Returns true if consumed cells or bytes have not been released ([`Consumer::give_back`]).
    #[inline(always)]
    pub fn owes_space(&self) -> bool {
        self.unpublished() != (0, 0)
    }

    /// Returns the numbers of cells and of units that have been consumed but not released.
    #[inline(always)]
    fn unpublished(&self) -> (u32, u32) {
        (
            self.next.wrapping_sub(1).wrapping_sub(self.published),
            self.units.wrapping_sub(self.units_published),
        )
    }
}
