//! Placement of the producer's next block in the byte ring.
//!
//! Blocks are written in *laps*: the first block of a lap is at the ring's start,
//! and every other block follows the previous one.
//! Only the units of blocks are counted, and not the unused units at the end of a lap,
//! so the consumer need not know where a lap ends.
//! The count of released units determines the consumer's lap and position:
//! the producer begins a lap only when the consumer is in the previous lap,
//! so the consumer is in that lap or in the current one.

use super::Kind;

/// The producer's view of the byte ring, in units.
#[derive(Debug)]
pub(super) struct LapSpace {
    /// Number of units in use, from the start of the ring.
    span: u32,
    /// Units written in total, with wrap-around.
    total: u32,
    /// Units released in total, as of the last poll of the consumer's counts.
    back: u32,
    /// Units written in this lap: the offset of the next block if it follows the last block.
    next: u32,
    /// The length of the previous lap in units.
    last: u32,
}

impl LapSpace {
    pub fn new(span: u32) -> LapSpace {
        LapSpace {
            span,
            total: 0,
            back: 0,
            next: 0,
            last: 0,
        }
    }

    /// Limits the ring to its first `span` units.
    /// The limit takes effect when the blocks after these units have been released.
    pub fn set_span(&mut self, span: u32) {
        self.span = span;
    }

    /// Returns the number of units that the ring is limited to.
    pub fn span(&self) -> u32 {
        self.span
    }

    /// Returns the offset in units of the next block if it follows the last block.
    #[inline(always)]
    pub fn next(&self) -> u32 {
        self.next
    }

    /// Returns true if `total` is a possible value of the consumer's count of released units:
    /// at least the last value, and at most the number of written units.
    #[inline(always)]
    pub fn may_give_back(&self, total: u32) -> bool {
        total.wrapping_sub(self.back) <= self.unread()
    }

    /// Records that the consumer has released `total` units since the start.
    pub fn given_back(&mut self, total: u32) {
        self.back = total;
    }

    /// Returns the number of units that have been written but not released.
    #[inline(always)]
    pub fn unread(&self) -> u32 {
        self.total.wrapping_sub(self.back)
    }

    /// Returns true if all units have been released.
    #[inline(always)]
    pub fn is_drained(&self) -> bool {
        self.unread() == 0
    }

    /// Returns the position for a block of `units` units:
    /// after the last block, or at the start of the next lap.
    /// Returns `None` if there is no space.
    #[inline(always)]
    pub fn find(&self, units: u32) -> Option<Kind> {
        let unread = self.unread();
        let end = self.next + units;
        if unread > self.next {
            // The consumer is in the previous lap.
            // So this lap may use the units up to the consumer's position.
            // Even if a faulty consumer publishes an invalid count, the block stays within the ring.
            let at = self.last.saturating_sub(unread - self.next);
            return (end <= at).then_some(Kind::Bytes);
        }
        if end <= self.span {
            return Some(Kind::Bytes);
        }
        // The consumer is in this lap, so the next lap may use the units that it has released.
        // If all units have been released, the whole ring is free.
        let at = self.next - unread;
        (unread == 0 || units <= at).then_some(Kind::BytesAtStart)
    }

    /// Returns the offset in units of a block at the position that [`LapSpace::find`] returned.
    #[inline(always)]
    pub fn start(&self, kind: Kind) -> u32 {
        match kind {
            Kind::BytesAtStart => 0,
            _ => self.next,
        }
    }

    /// Records that a block of `units` units has been written at the position `kind`.
    #[inline(always)]
    pub fn take(&mut self, kind: Kind, units: u32) {
        if kind == Kind::BytesAtStart {
            self.last = self.next;
        }
        self.next = self.start(kind) + units;
        self.total = self.total.wrapping_add(units);
    }
}
