//! A first-fit allocator of offsets in one process's area of a shared segment.
//!
//! An arena belongs to one process, so it is plain data without locks.
//! The arena computes offsets and never accesses the memory itself.
//! The free ranges are an ordered map; a returned block is merged with its free neighbours
//! (D. Knuth, The Art of Computer Programming, volume 1, section 2.5).

use std::collections::BTreeMap;

/// Unit of allocation in bytes: length and offset of every block are multiples of this unit,
/// so no two blocks share a cache line.
pub const GRAIN: usize = 64;

/// The free ranges and the allocated blocks of one area.
#[derive(Debug)]
pub struct Arena {
    /// Maps the start of each free range to its length; two free ranges are never adjacent.
    free: BTreeMap<usize, usize>,
    /// Maps the start of each allocated block to its length.
    out: BTreeMap<usize, usize>,
}

impl Arena {
    /// Creates an arena of `len` free bytes, rounded down to a multiple of [`GRAIN`].
    pub fn new(len: usize) -> Arena {
        Arena {
            free: BTreeMap::from([(0, len / GRAIN * GRAIN)]),
            out: BTreeMap::new(),
        }
    }

    /// Allocates a block of at least `len` bytes aligned to `align`, a power of two, and returns its offset.
    pub fn take(&mut self, len: usize, align: usize) -> Option<usize> {
        self.take_beyond(0, len, align)
    }

    /// Allocates as [`Arena::take`], but aligns `base` + offset instead of the offset;
    /// `base` is a multiple of [`GRAIN`].
    pub fn take_beyond(&mut self, base: usize, len: usize, align: usize) -> Option<usize> {
        let len = len.max(1).checked_next_multiple_of(GRAIN)?;
        let align = align.max(GRAIN);
        let (start, range_len, at) = self.free.iter().find_map(|(&start, &range_len)| {
            let aligned = start.checked_add(base)?.checked_next_multiple_of(align)?;
            let at = aligned - base;
            (at.checked_add(len)? <= start + range_len).then_some((start, range_len, at))
        })?;
        self.free.remove(&start);
        if at > start {
            self.free.insert(start, at - start);
        }
        let end = start + range_len;
        if at + len < end {
            self.free.insert(at + len, end - at - len);
        }
        self.out.insert(at, len);
        Some(at)
    }

    /// Frees the block at `start` and returns its length; `None` if no such block is allocated.
    pub fn give(&mut self, start: usize) -> Option<usize> {
        let len = self.out.remove(&start)?;
        let (mut from, mut to) = (start, start + len);
        if let Some((&before, &before_len)) = self.free.range(..start).next_back()
            && before + before_len == start
        {
            self.free.remove(&before);
            from = before;
        }
        if let Some(after_len) = self.free.remove(&to) {
            to += after_len;
        }
        self.free.insert(from, to - from);
        Some(len)
    }

    /// Returns the number of allocated bytes.
    pub fn used(&self) -> usize {
        self.out.values().sum()
    }

    /// Returns the length of the longest block that can be allocated now.
    pub fn longest_free(&self) -> usize {
        self.free.values().copied().max().unwrap_or(0)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn blocks_never_overlap_and_everything_comes_back(
            steps in proptest::collection::vec((0usize..3000, 0u32..13, any::<bool>()), 1..200)
        ) {
            let mut arena = Arena::new(1 << 16);
            let mut out: Vec<(usize, usize)> = Vec::new();
            for (len, align, back) in steps {
                if back && !out.is_empty() {
                    let (at, len) = out.swap_remove(len % out.len());
                    prop_assert!(arena.give(at).unwrap() >= len);
                    prop_assert!(arena.give(at).is_none());
                } else if let Some(at) = arena.take(len, 1 << align) {
                    prop_assert_eq!(at % (1 << align), 0);
                    prop_assert!(at + len <= 1 << 16);
                    prop_assert!(out.iter().all(|&(o, l)| at + len <= o || o + l <= at));
                    out.push((at, len));
                }
            }
            for (at, _) in out {
                arena.give(at);
            }
            prop_assert_eq!(arena.used(), 0);
            prop_assert_eq!(arena.longest_free(), 1 << 16);
        }
    }

    #[test]
    fn alignment_counts_from_where_it_is_wanted() {
        let mut arena = Arena::new(1 << 20);
        for base in [4096, 3 * 4096, 64] {
            let at = arena.take_beyond(base, 100, 8192).unwrap();
            assert_eq!((base + at) % 8192, 0);
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let mut arena = Arena::new(1024);
        assert!(arena.take(usize::MAX, 64).is_none());
        assert!(arena.take(1025, 64).is_none());
        assert_eq!(arena.take(1024, 64), Some(0));
        assert!(arena.take(0, 1).is_none());
    }
}
