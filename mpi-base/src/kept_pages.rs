//! Memory of an arena's free blocks that is kept for the next block instead of returned to the kernel.
//!
//! A page that is returned to the kernel costs a page fault in each process at the next access,
//! and the kernel zeroes the page again.
//! A loop that creates and frees the same communicator,
//! window or file would have these costs in every iteration.
//! So a limited number of bytes is kept.
//!
//! Kept memory has the contents that its last block left.
//! It is zeroed when a block that must be zero is allocated there,
//! so the memory of a block that is never allocated again is never zeroed.

use std::collections::BTreeMap;
use std::ops::Range;

/// Ranges of kept memory, as offsets in the arena's memory.
#[derive(Debug)]
pub struct KeptPages {
    /// Maps the start of each range to its end; no two ranges overlap.
    ranges: BTreeMap<usize, usize>,
    bytes: usize,
    most: usize,
}

impl KeptPages {
    /// Returns an empty set that will keep at most `most` bytes.
    pub fn new(most: usize) -> KeptPages {
        KeptPages {
            ranges: BTreeMap::new(),
            bytes: 0,
            most,
        }
    }

    /// Returns the number of bytes that can still be added.
    pub fn room(&self) -> usize {
        self.most - self.bytes
    }

    /// Returns the number of bytes that are kept.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds ranges, none of which is already kept; returns false and adds none if they do not all fit.
    pub fn keep(&mut self, ranges: &[Range<usize>]) -> bool {
        let more: usize = ranges.iter().map(ExactSizeIterator::len).sum();
        if more > self.room() {
            return false;
        }
        self.bytes += more;
        self.ranges
            .extend(ranges.iter().map(|range| (range.start, range.end)));
        true
    }

    /// Removes the kept memory within a range that has been allocated, and returns the removed ranges.
    pub fn take(&mut self, taken: Range<usize>) -> Vec<Range<usize>> {
        let mut removed = Vec::new();
        while let Some((&start, &end)) = self.ranges.range(..taken.end).next_back()
            && end > taken.start
        {
            self.ranges.remove(&start);
            self.bytes -= end - start;
            removed.push(start.max(taken.start)..end.min(taken.end));
            for rest in [start..taken.start, taken.end..end] {
                if !rest.is_empty() {
                    self.bytes += rest.len();
                    self.ranges.insert(rest.start, rest.end);
                }
            }
            if start < taken.start {
                break;
            }
        }
        removed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_kept_is_what_was_added_and_not_taken(
            steps in proptest::collection::vec((0usize..200, 0usize..40, any::<bool>()), 1..80)
        ) {
            let mut kept = KeptPages::new(100);
            let mut model = vec![false; 300];
            for (start, len, takes) in steps {
                let range = start..start + len;
                let is_new = model[range.clone()].iter().all(|kept| !kept);
                if takes {
                    let mut taken = kept.take(range.clone());
                    taken.reverse();
                    let taken: Vec<usize> = taken.into_iter().flatten().collect();
                    let known: Vec<usize> = range.clone().filter(|at| model[*at]).collect();
                    prop_assert_eq!(taken, known);
                    model[range].fill(false);
                } else if is_new && len > 0 && kept.keep(std::slice::from_ref(&range)) {
                    model[range].fill(true);
                }
                let bytes = model.iter().filter(|kept| **kept).count();
                prop_assert_eq!(kept.room(), 100 - bytes);
                let ranges: usize = kept.ranges.iter().map(|(start, end)| end - start).sum();
                prop_assert_eq!(ranges, bytes);
            }
        }
    }

    #[test]
    fn more_than_the_bound_is_not_kept() {
        let mut kept = KeptPages::new(100);
        assert!(kept.keep(std::slice::from_ref(&(0..60))));
        assert!(!kept.keep(&[100..120, 200..221]));
        assert!(kept.keep(&[100..120, 200..220]));
        kept.take(30..110);
        assert_eq!(kept.room(), 40);
    }
}
