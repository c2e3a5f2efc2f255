//! A bitmap in which many threads set bits and one thread reads and clears them.
//!
//! SYNC POINT `bitmap.word`: the thread that sets a bit (marker) uses `fetch_or` (Release);
//! the thread that clears the bits (taker) uses `swap` (Acquire).
//! A marker that finds its bit set writes nothing.
//! No event is lost if the marker publishes its event, executes a sequentially consistent fence,
//! and then reads the bit,
//! and the taker executes a fence between its swap and its poll for events.
//! Either the marker sees the cleared bit and sets it again, or the taker's poll sees the event.
#![allow(unsafe_code)]

use crate::atomic::{AtomicU64, Ordering, fence};

/// Number of 64-bit words of a bitmap.
pub const WORDS: usize = 16;
/// Number of bits, and thus the maximum number of processes.
pub const BITS: usize = WORDS * 64;

/// One bit for each process of the node.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Bitmap {
    words: [AtomicU64; WORDS],
}

#[cfg(not(loom))]
// SAFETY: `words` are atomics, so every bit pattern is valid and every write is atomic.
unsafe impl crate::mem::Shared for Bitmap {}

impl Bitmap {
    /// Returns a bitmap with no bit set; zeroed shared memory is such a bitmap.
    pub fn new() -> Bitmap {
        Bitmap {
            words: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    /// Sets bit `i`. The caller has executed its fence between publishing the event and this call.
    #[inline]
    pub fn mark(&self, i: usize) {
        let (word, bit) = (&self.words[i / 64], 1u64 << (i % 64));
        if word.load(Ordering::Relaxed) & bit == 0 {
            // SYNC POINT bitmap.word
            word.fetch_or(bit, Ordering::Release);
        }
    }

    /// Returns true if any of the first `words` words has a bit set.
    #[inline]
    pub fn any(&self, words: usize) -> bool {
        self.words[..words]
            .iter()
            .any(|w| w.load(Ordering::Relaxed) != 0)
    }

    /// Returns and clears the bits of word `w`.
    /// Events that were published before their bit was set are visible afterwards.
    #[inline]
    pub fn take(&self, w: usize) -> u64 {
        let word = &self.words[w];
        if word.load(Ordering::Relaxed) == 0 {
            return 0;
        }
        // SYNC POINT bitmap.word
        let bits = word.swap(0, Ordering::Acquire);
        fence(Ordering::SeqCst);
        bits
    }

    /// Returns the bits of word `w` without clearing them.
    #[inline]
    pub fn peek(&self, w: usize) -> u64 {
        self.words[w].load(Ordering::Acquire)
    }
}

impl Default for Bitmap {
    fn default() -> Bitmap {
        Bitmap::new()
    }
}

/// Returns the positions of the bits set in `word`, lowest first.
pub fn ones(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        if word == 0 {
            return None;
        }
        let i = word.trailing_zeros() as usize;
        word &= word - 1;
        Some(i)
    })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn what_is_marked_is_taken_once() {
        let map = Bitmap::new();
        for i in [0, 63, 64, BITS - 1] {
            map.mark(i);
            map.mark(i);
        }
        assert!(map.any(1));
        assert_eq!(ones(map.take(0)).collect::<Vec<_>>(), [0, 63]);
        assert!(!map.any(1));
        assert_eq!(map.take(0), 0);
        assert_eq!(map.take(1), 1);
        assert_eq!(map.take(WORDS - 1), 1 << 63);
    }
}
