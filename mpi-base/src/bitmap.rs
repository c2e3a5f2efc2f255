//! A bitmap between many threads that mark and one that takes.
//!
//! SYNC POINT `bitmap.word`: a marker's `fetch_or` (Release) is read by the taker's `swap` (Acquire).
//! A marker that finds its bit set already leaves it at that, without a write.
//! This loses nothing if the marker has published its news and executed a sequentially consistent fence before it looks,
//! and the taker fences between its swap and looking for the news:
//! either the marker sees the bit gone and sets it again, or the taker's look sees the news.
#![allow(unsafe_code)]

use crate::atomic::{AtomicU64, Ordering, fence};

/// How many words a bitmap has.
pub const WORDS: usize = 16;
/// How many processes a bitmap tells apart.
pub const BITS: usize = WORDS * 64;

/// One bit for each process of the node.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Bitmap {
    words: [AtomicU64; WORDS],
}

// SAFETY: atomics only.
#[cfg(not(loom))]
unsafe impl crate::mem::Shared for Bitmap {}

impl Bitmap {
    /// With no bit set; so is zeroed shared memory.
    pub fn new() -> Bitmap {
        Bitmap {
            words: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    /// Sets bit `i`; the caller's fence lies between its news and this call.
    #[inline]
    pub fn mark(&self, i: usize) {
        let (word, bit) = (&self.words[i / 64], 1u64 << (i % 64));
        if word.load(Ordering::Relaxed) & bit == 0 {
            // SYNC POINT bitmap.word
            word.fetch_or(bit, Ordering::Release);
        }
    }

    /// Whether any of the first `words` words has a bit set.
    #[inline]
    pub fn any(&self, words: usize) -> bool {
        self.words[..words]
            .iter()
            .any(|w| w.load(Ordering::Relaxed) != 0)
    }

    /// Takes and clears the bits of word `w`; after it, news that was marked there is visible.
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

    /// The bits of word `w`, left in place.
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

/// The positions of the bits set in `word`, lowest first.
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
