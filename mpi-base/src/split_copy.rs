//! Work cut into pieces that its owner takes from the front and one helper from the back, until they meet.
//!
//! Neither side waits for the other: a helper that never comes costs nothing, and one that comes late finds nothing left.
//! Each side works on its own end, so that pieces of the same work, done again, stay in the same core's cache.
//!
//! ```text
//! word:  63     32 31   16 15   0
//!        [ number ][ front ][ back ]     pieces front..back have not been taken
//! ```
//!
//! Which side touches what: the owner alone offers, and only when everything offered before in the same place has been taken;
//! each offer has a new number, so a helper that comes for an earlier one changes nothing.
//!
//! SYNC POINT `pieces.taken`: the helper's taking (Release) is read by the owner when it finds nothing left (Acquire),
//! so that the owner also sees what the helper wrote before it took the piece, its mark in [`Helping`] above all.
//! SYNC POINT `pieces.done`: the helper's taking away of that mark (Release) is read by an owner that waits for it (Acquire).
#![allow(unsafe_code)]

use crate::atomic::{AtomicU64, Ordering};

/// The pieces of one offer; zeroed memory is an exhausted one.
#[derive(Debug)]
#[repr(align(64))]
pub struct Pieces(AtomicU64);

// SAFETY: one atomic.
#[cfg(not(loom))]
unsafe impl crate::mem::Shared for Pieces {}

impl Default for Pieces {
    fn default() -> Pieces {
        Pieces::new()
    }
}

impl Pieces {
    /// Nothing on offer; so is zeroed shared memory.
    pub fn new() -> Pieces {
        Pieces(AtomicU64::new(0))
    }

    /// Offers so many pieces under a number that was not used here before; only for the owner.
    ///
    /// Answers false, and offers nothing, if something is left of the last offer.
    pub fn offer(&self, number: u32, pieces: u16) -> bool {
        let exhausted = !is_open(self.0.load(Ordering::Relaxed));
        if exhausted {
            let word = u64::from(number) << 32 | u64::from(pieces);
            self.0.store(word, Ordering::Relaxed);
        }
        exhausted
    }

    /// Whether something is left of offer `number`.
    pub fn is_open(&self, number: u32) -> bool {
        let word = self.0.load(Ordering::Relaxed);
        number_of(word) == number && is_open(word)
    }

    /// Takes the first piece that is left of offer `number`, if it is less than `most`; only for the owner.
    pub fn take_front(&self, number: u32, most: u16) -> Option<u16> {
        self.take(number, |word, front, _| {
            (front < most).then_some((word + (1 << 16), front))
        })
    }

    /// Takes the last piece that is left of offer `number`.
    pub fn take_back(&self, number: u32) -> Option<u16> {
        self.take(number, |word, _, back| Some((word - 1, back - 1)))
    }

    /// `choose` answers the next word and the piece, if there is one to take.
    fn take(
        &self,
        number: u32,
        choose: impl Fn(u64, u16, u16) -> Option<(u64, u16)>,
    ) -> Option<u16> {
        // SYNC POINT pieces.taken
        let mut word = self.0.load(Ordering::Acquire);
        loop {
            if number_of(word) != number || !is_open(word) {
                return None;
            }
            let (next, piece) = choose(word, (word >> 16) as u16, word as u16)?;
            match self
                .0
                .compare_exchange(word, next, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => return Some(piece),
                Err(found) => word = found,
            }
        }
    }
}

/// The offers that one owner has open at a time; each number has its place.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Offers([Pieces; OFFERS]);

/// How many offers an owner may have open.
pub const OFFERS: usize = 8;

// SAFETY: atomics only.
#[cfg(not(loom))]
unsafe impl crate::mem::Shared for Offers {}

impl Offers {
    /// The place of offer `number`.
    pub fn at(&self, number: u32) -> &Pieces {
        &self.0[number as usize % OFFERS]
    }
}

/// Which process a process is helping just now, for the owner that wants its memory back.
///
/// The helper alone writes it, before it takes the first piece and after it is through with the last.
#[derive(Debug)]
#[repr(align(128))]
pub struct Helping(AtomicU64);

// SAFETY: one atomic.
#[cfg(not(loom))]
unsafe impl crate::mem::Shared for Helping {}

impl Default for Helping {
    fn default() -> Helping {
        Helping::new()
    }
}

impl Helping {
    /// No piece in work; so is zeroed shared memory.
    pub fn new() -> Helping {
        Helping(AtomicU64::new(0))
    }

    /// From here on pieces of offer `number` of rank `owner` may be in work.
    pub fn begin(&self, owner: u32, number: u32) {
        // Made visible by the taking of a piece, SYNC POINT pieces.taken.
        self.0
            .store(Helping::mark(owner, number), Ordering::Relaxed);
    }

    /// All that was taken is done.
    pub fn end(&self) {
        // SYNC POINT pieces.done
        self.0.store(0, Ordering::Release);
    }

    /// Whether pieces of offer `number` of rank `owner`, of which nothing is left to take, are still in work.
    pub fn is_with(&self, owner: u32, number: u32) -> bool {
        // SYNC POINT pieces.done
        self.0.load(Ordering::Acquire) == Helping::mark(owner, number)
    }

    fn mark(owner: u32, number: u32) -> u64 {
        u64::from(owner + 1) << 32 | u64::from(number)
    }
}

fn is_open(word: u64) -> bool {
    ((word >> 16) as u16) < word as u16
}

fn number_of(word: u64) -> u32 {
    (word >> 32) as u32
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn both_ends_meet_and_every_piece_is_taken_once() {
        let pieces = Pieces::new();
        assert_eq!(pieces.take_front(0, 9), None);
        assert!(pieces.offer(7, 3));
        assert_eq!(pieces.take_back(7), Some(2));
        assert_eq!(pieces.take_front(7, 1), Some(0));
        assert_eq!(pieces.take_front(7, 1), None);
        assert!(pieces.is_open(7) && !pieces.offer(8, 1));
        assert_eq!(pieces.take_back(7), Some(1));
        assert_eq!((pieces.take_front(7, 9), pieces.take_back(7)), (None, None));
        assert!(!pieces.is_open(7));
    }

    #[test]
    fn a_helper_of_an_earlier_offer_takes_nothing() {
        let pieces = Pieces::new();
        assert!(pieces.offer(u32::MAX, 1));
        assert_eq!(pieces.take_front(u32::MAX, 9), Some(0));
        assert!(pieces.offer(0, u16::MAX));
        assert_eq!(pieces.take_back(u32::MAX), None);
        assert_eq!(pieces.take_back(0), Some(u16::MAX - 1));
    }
}
