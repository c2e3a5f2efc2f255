//! Where the producer may put its next block.
//!
//! Blocks are written in *laps*: the first block of a lap lies at the ring's start, each other one behind the block before.
//! Only what a block takes is counted, never what is left out at the end of a lap, so the consumer need not know where laps end.
//! From the count of what has been given back it follows which lap the consumer is in, and where:
//! the producer begins a lap only when the consumer is in the one before, so it is in that or in this.

use super::Kind;

/// What the producer knows of the byte ring; everything in units.
#[derive(Debug)]
pub(super) struct Room {
    /// How much of the ring is used, from its start.
    span: u32,
    /// Written since the beginning; wraps around.
    total: u32,
    /// How much of that had been given back when it was last looked at.
    back: u32,
    /// Written in this lap, so where the next block lies if it lies behind the last.
    next: u32,
    /// How long the lap before was.
    last: u32,
}

impl Room {
    pub fn new(span: u32) -> Room {
        Room {
            span,
            total: 0,
            back: 0,
            next: 0,
            last: 0,
        }
    }

    /// From now on only the first `span` units are used, as soon as what lies behind them has been given back.
    pub fn set_span(&mut self, span: u32) {
        self.span = span;
    }

    /// How much of the ring is used.
    pub fn span(&self) -> u32 {
        self.span
    }

    /// Where the next block lies if it lies behind the last.
    #[inline(always)]
    pub fn next(&self) -> u32 {
        self.next
    }

    /// Whether so much can have been given back in all: no less than was told before, and no more than was written.
    #[inline(always)]
    pub fn may_give_back(&self, total: u32) -> bool {
        total.wrapping_sub(self.back) <= self.unread()
    }

    /// So much of all that was written has been given back.
    pub fn given_back(&mut self, total: u32) {
        self.back = total;
    }

    /// How much has not been given back.
    #[inline(always)]
    fn unread(&self) -> u32 {
        self.total.wrapping_sub(self.back)
    }

    /// Whether all has been given back.
    #[inline(always)]
    pub fn is_drained(&self) -> bool {
        self.unread() == 0
    }

    /// Where a block of so many units can lie now: behind the last one, or at the start of the next lap.
    #[inline(always)]
    pub fn find(&self, units: u32) -> Option<Kind> {
        let unread = self.unread();
        let end = self.next + units;
        if unread > self.next {
            // The consumer is in the lap before; up to where it is, the start of this one is free.
            // Whatever it claims to have given back, the block stays in the ring.
            let at = self.last.saturating_sub(unread - self.next);
            return (end <= at).then_some(Kind::Bytes);
        }
        if end <= self.span {
            return Some(Kind::Bytes);
        }
        // All that is read of this lap is free for the next one; and everything, if nothing is unread.
        let at = self.next - unread;
        (unread == 0 || units <= at).then_some(Kind::BytesAtStart)
    }

    /// Where a block begins that lies as [`Room::find`] says.
    #[inline(always)]
    pub fn start(&self, kind: Kind) -> u32 {
        match kind {
            Kind::BytesAtStart => 0,
            _ => self.next,
        }
    }

    /// Such a block of so many units has been written.
    #[inline(always)]
    pub fn take(&mut self, kind: Kind, units: u32) {
        if kind == Kind::BytesAtStart {
            self.last = self.next;
        }
        self.next = self.start(kind) + units;
        self.total = self.total.wrapping_add(units);
    }
}
