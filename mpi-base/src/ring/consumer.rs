//! The reading end of a ring.
#![allow(unsafe_code)]

use super::{
    Control, GIVE_BACK, INLINE, INLINE_WORDS, Kind, MORE_WORDS, RingMemory, SPREAD, SPREAD_WORDS,
    Shape, UNIT, more_cells, units_of,
};
use crate::atomic::Ordering;
use std::mem::MaybeUninit;

/// A message as the consumer shows it; it ends with the call that shows it.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// Which active message: the number under which the receiver has registered what to do, never looked at by the ring.
    pub am: u8,
    /// Two words that travel in the message's first cell, in front of the payload; the ring does not know what they mean.
    pub header: [u64; 2],
    /// The rest; at most [`MAX_LEN`](super::MAX_LEN) bytes long.
    pub body: Body<'a>,
}

/// A message's payload.
#[derive(Clone, Copy, Debug)]
pub enum Body<'a> {
    /// The bytes themselves: copied out of the cells, or, if they are long, still in the ring, where the producer must not be trusted to leave them alone.
    Here(&'a [u8]),
    /// `len` bytes in the place the sender's `token` names; both are the sender's word and to be checked.
    Elsewhere {
        /// Names the place, usually a pooled fragment of the sender's; see [`Node::read_frag`](crate::node::Node::read_frag).
        token: u64,
        /// In bytes.
        len: usize,
    },
}

/// What a look into the ring found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Polled<R> {
    /// The next cell is not written yet, or the ring is dead.
    Empty,
    /// One message was shown; this is what the one that saw it returned.
    Got(R),
    /// A cell that no producer of ours can have written; the ring is dead from here on.
    Broken,
}

/// How far behind the next cell the one lies that [`Consumer::await_more`] asks for.
///
/// In a stream it has been written by then; the next cell itself would come too late, and one further on may still be the producer's.
const AHEAD: u32 = 2;

/// The only reader of a ring.
#[derive(Debug)]
pub struct Consumer {
    memory: RingMemory,
    /// The number of the cell expected next.
    pub(super) next: u32,
    /// Units of the byte ring that were read since the beginning, and where the next block lies if it lies behind the last.
    units: u32,
    at: u32,
    /// What the producer knows to be given back.
    pub(super) published: u32,
    units_published: u32,
    /// With so many consumed the producer is told, whatever else there is to do.
    many_cells: u32,
    many_units: u32,
    /// Up to which unit the byte ring was given memory by a wish for that much.
    populated: u32,
    broken: bool,
    /// How many cells followed the last message's first one.
    more: u32,
}

impl Consumer {
    /// The consumer of a fresh ring.
    ///
    /// # Safety
    /// It must be the only consumer this memory ever has.
    pub unsafe fn new(memory: RingMemory) -> Consumer {
        let shape = memory.shape();
        Consumer {
            memory,
            many_cells: shape.cells() / 4,
            many_units: GIVE_BACK.min(shape.units() / 4),
            populated: 0,
            next: 1,
            units: 0,
            at: 0,
            published: 0,
            units_published: 0,
            broken: false,
            more: 0,
        }
    }

    /// Whether a message is there.
    #[inline(always)]
    pub fn is_ready(&self) -> bool {
        let word = self.memory.cell(self.next).words[0].load(Ordering::Relaxed);
        word as u32 == self.next && !self.broken
    }

    /// Whether the next cell holds what no producer of ours leaves there: neither the next message nor what was there a lap ago.
    ///
    /// Such a cell would be waited for without end, so a process asks before it sleeps.
    pub fn is_odd(&self) -> bool {
        let seq = self.memory.cell(self.next).words[0].load(Ordering::Relaxed) as u32;
        let before = self.next.wrapping_sub(self.memory.shape().cells());
        let first_lap = self.next <= self.memory.shape().cells();
        let usual = seq == self.next || seq == before || (seq == 0 && first_lap);
        !usual && !self.broken
    }

    /// Whether a message is there; if not, the cells of one like the last are asked for at once, so that they come in one trip.
    #[inline(always)]
    pub fn is_ready_or_await(&self) -> bool {
        let ready = self.is_ready();
        if !ready && self.more > 0 {
            self.memory
                .await_cells(self.next.wrapping_add(1), self.more);
        }
        ready
    }

    /// Asks for a cell further on, for a consumer that finds one message after another;
    /// in a dialogue it would take the cell away from the producer, which is about to fill it.
    #[inline(always)]
    pub fn await_more(&self) {
        self.memory.await_cells(self.next.wrapping_add(AHEAD), 1);
    }

    /// Never reads from this ring again, because what came through it made no sense.
    pub fn condemn(&mut self) {
        self.broken = true;
    }

    /// Whether the ring was found to hold what no producer of ours writes.
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    /// The ring's cells and bytes.
    pub fn shape(&self) -> Shape {
        self.memory.shape()
    }

    /// Has the producer use no more than the first `bytes` of the byte ring, from when it looks next.
    pub fn wish_span(&mut self, bytes: usize) {
        let units = units_of(bytes.min(self.shape().bytes()));
        if units > self.populated {
            self.memory.populate(self.populated, units);
            self.populated = units;
        }
        let units = u64::from(units);
        // An order by itself: whatever the producer uses, we are told where each lap begins.
        self.memory
            .given_back()
            .span
            .store(units, Ordering::Relaxed);
    }

    /// Shows the next message to `f` and gives its place back, sooner or later.
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
                // The words are copied out before the sink sees them, so it works on memory that is its own.
                let payload: [u64; INLINE_WORDS] =
                    std::array::from_fn(|i| words[3 + i].load(Ordering::Relaxed));
                // SAFETY: len <= INLINE, the size of `payload`, all of it initialised.
                show(Body::Here(unsafe {
                    std::slice::from_raw_parts(payload.as_ptr().cast::<u8>(), len)
                }))
            }
            Kind::Inline if len <= SPREAD => {
                more = more_cells(len);
                let mut payload = [const { MaybeUninit::uninit() }; SPREAD_WORDS];
                self.gather(more, &mut payload);
                // SAFETY: `gather` has filled this cell's words and those of `more` further cells, which hold `len` bytes or more.
                show(Body::Here(unsafe {
                    std::slice::from_raw_parts(payload.as_ptr().cast::<u8>(), len)
                }))
            }
            Kind::Bytes | Kind::BytesAtStart => {
                let Some(start) = self.block(control.kind, len) else {
                    self.broken = true;
                    return Polled::Broken;
                };
                // SAFETY: `block` keeps it inside the ring; the cell that named it handed it to us until we give it back.
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

    /// Where a block begins, in bytes; `None` if it does not lie in the ring.
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

    /// Copies out the payload words of the next message, which goes on in `more` cells.
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

    /// Tells the producer about everything consumed; called when there is nothing better to do.
    #[inline]
    pub fn give_back(&mut self) {
        if self.unpublished() == (0, 0) {
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

    /// Cells and units consumed of which the producer has not been told.
    #[inline(always)]
    fn unpublished(&self) -> (u32, u32) {
        (
            self.next.wrapping_sub(1).wrapping_sub(self.published),
            self.units.wrapping_sub(self.units_published),
        )
    }
}
