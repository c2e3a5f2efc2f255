//! Split copies: the owner of a copy takes pieces of it from the front and one helper takes
//! pieces from the back, until no piece is left.
//!
//! Neither side waits for the other: a helper that never begins causes no delay,
//! and a late helper finds no pieces.
//! Each side has its own end of the copy.
//! So repeated copies of the same memory use the same core's cache.
//!
//! ```text
//! word:  63     32 31   16 15   0
//!        [ number ][ front ][ back ]     pieces front..back have not been taken
//! ```
//!
//! Ownership: only the owner offers pieces, and only when all pieces of the slot's previous offer
//! have been taken.
//! Each offer has a new number, so a helper that still uses an earlier number takes no piece.
//!
//! SYNC POINT `pieces.taken`: the helper takes a piece by compare-and-swap (Release);
//! the owner loads the word (Acquire) when no piece is left.
//! So the owner also sees the helper's stores before the compare-and-swap,
//! in particular its word in [`Helping`].
//! SYNC POINT `pieces.done`: the helper clears that word (Release);
//! an owner that waits for the helper loads the word (Acquire).
#![allow(unsafe_code)]

use crate::atomic::{AtomicU64, Ordering};

/// The pieces of one offer that have not been taken; zeroed memory is an exhausted offer.
#[derive(Debug)]
#[repr(align(64))]
pub struct Pieces(AtomicU64);

#[cfg(not(loom))]
// SAFETY: the only field is an atomic, so every bit pattern is valid and every write is atomic.
unsafe impl crate::mem::Shared for Pieces {}

impl Default for Pieces {
    fn default() -> Pieces {
        Pieces::new()
    }
}

impl Pieces {
    /// Returns an exhausted offer; zeroed shared memory is also an exhausted offer.
    pub fn new() -> Pieces {
        Pieces(AtomicU64::new(0))
    }

    /// Offers `pieces` pieces with a number that this slot has not had before (owner only).
    ///
    /// Returns false and offers nothing if pieces of the previous offer are left.
    pub fn offer(&self, number: u32, pieces: u16) -> bool {
        let exhausted = !is_open(self.0.load(Ordering::Relaxed));
        if exhausted {
            let word = u64::from(number) << 32 | u64::from(pieces);
            self.0.store(word, Ordering::Relaxed);
        }
        exhausted
    }

    /// Returns true if `number` is the current offer and pieces of it are left.
    pub fn is_open(&self, number: u32) -> bool {
        let word = self.0.load(Ordering::Relaxed);
        number_of(word) == number && is_open(word)
    }

    /// Takes the first remaining piece of offer `number` if its index is less than `most`;
    /// `None` otherwise (owner only).
    pub fn take_front(&self, number: u32, most: u16) -> Option<u16> {
        self.take(number, |word, front, _| {
            (front < most).then_some((word + (1 << 16), front))
        })
    }

    /// Takes the last remaining piece of offer `number`; `None` if no piece is left (helper).
    pub fn take_back(&self, number: u32) -> Option<u16> {
        self.take(number, |word, _, back| Some((word - 1, back - 1)))
    }

    /// Takes the piece that `choose` returns, together with the new value of the word.
    /// Returns `None` if `choose` returns `None` or if no piece of offer `number` is left.
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

/// The slots of one owner's offers; the offer number selects the slot.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Offers([Pieces; OFFERS]);

/// The maximum number of open offers of one owner, and the number of slots.
pub const OFFERS: usize = 8;

#[cfg(not(loom))]
// SAFETY: the fields are atomics, so every bit pattern is valid and every write is atomic.
unsafe impl crate::mem::Shared for Offers {}

impl Offers {
    /// Returns the pieces in the slot of offer `number`.
    pub fn at(&self, number: u32) -> &Pieces {
        &self.0[number as usize % OFFERS]
    }
}

/// The offer in which this process helps; read by an owner that wants to reuse the memory.
///
/// Only the helper writes this word, before it takes the first piece and after it has copied the
/// last piece that it has taken.
#[derive(Debug)]
#[repr(align(128))]
pub struct Helping(AtomicU64);

#[cfg(not(loom))]
// SAFETY: the only field is an atomic, so every bit pattern is valid and every write is atomic.
unsafe impl crate::mem::Shared for Helping {}

impl Default for Helping {
    fn default() -> Helping {
        Helping::new()
    }
}

impl Helping {
    /// Returns the state "not helping"; zeroed shared memory has this state.
    pub fn new() -> Helping {
        Helping(AtomicU64::new(0))
    }

    /// Stores that this process may copy pieces of offer `number` of rank `owner` from now on.
    pub fn begin(&self, owner: u32, number: u32) {
        // The compare-and-swap that takes a piece publishes this store, SYNC POINT pieces.taken.
        self.0
            .store(Helping::mark(owner, number), Ordering::Relaxed);
    }

    /// Stores that the helper has copied all pieces that it has taken.
    pub fn end(&self) {
        // SYNC POINT pieces.done
        self.0.store(0, Ordering::Release);
    }

    /// Returns true if the helper may still copy pieces of offer `number` of rank `owner`.
    /// The caller has found that no piece of the offer is left to take.
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
