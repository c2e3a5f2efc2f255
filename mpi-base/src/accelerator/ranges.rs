//! Sets of byte ranges, for the parts of a buffer that have arrived or have been copied.

use std::ops::Range;

/// A set of bytes: disjoint ranges in ascending order, of which no two are adjacent.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Ranges(Vec<Range<usize>>);

/// Returns true if the two ranges have a byte in common.
pub(super) fn overlap(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start.max(b.start) < a.end.min(b.end)
}

impl Ranges {
    /// Adds the bytes of a range.
    pub fn add(&mut self, range: Range<usize>) {
        if range.is_empty() {
            return;
        }
        // The stored ranges that overlap the new one or are adjacent to it.
        let first = self.0.partition_point(|known| known.end < range.start);
        let last = self.0.partition_point(|known| known.start <= range.end);
        let joined = self.0[first..last].iter().fold(range, |joined, known| {
            joined.start.min(known.start)..joined.end.max(known.end)
        });
        self.0.splice(first..last, [joined]);
    }

    /// Removes the bytes of a range.
    pub fn remove(&mut self, range: &Range<usize>) {
        if range.is_empty() {
            return;
        }
        let first = self.0.partition_point(|known| known.end <= range.start);
        let last = self.0.partition_point(|known| known.start < range.end);
        let rest = self.0[first..last].iter().flat_map(|known| {
            [
                known.start..known.end.min(range.start),
                known.start.max(range.end)..known.end,
            ]
        });
        let rest: Vec<_> = rest.filter(|rest| !rest.is_empty()).collect();
        self.0.splice(first..last, rest);
    }

    /// Returns the first range of bytes in `within` that are not in the set.
    pub fn first_gap(&self, within: &Range<usize>) -> Option<Range<usize>> {
        let around = self.0.partition_point(|known| known.end <= within.start);
        let start = match self.0.get(around) {
            Some(known) if known.start <= within.start => known.end,
            _ => within.start,
        };
        let next = self.0.partition_point(|known| known.start <= start);
        let end = (self.0.get(next)).map_or(within.end, |known| known.start.min(within.end));
        (start < end).then_some(start..end)
    }

    /// Returns the first range of the set that overlaps `within`; it may begin before `within` and end after it.
    pub fn first_in(&self, within: &Range<usize>) -> Option<Range<usize>> {
        let at = self.0.partition_point(|known| known.end <= within.start);
        let known = self.0.get(at)?;
        overlap(known, within).then(|| known.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BYTES: usize = 24;

    fn ranges() -> impl Strategy<Value = Range<usize>> {
        (0..BYTES, 0..BYTES).prop_map(|(a, b)| a.min(b)..a.max(b))
    }

    fn runs(set: &[bool], within: Range<usize>, wanted: bool) -> Option<Range<usize>> {
        let start = within.clone().find(|&at| set[at] == wanted)?;
        let end = (start..within.end).find(|&at| set[at] != wanted);
        Some(start..end.unwrap_or(within.end))
    }

    proptest! {
        /// Compares the set with an array of one flag for each byte.
        #[test]
        fn ranges_are_a_set_of_bytes(
            steps in proptest::collection::vec((any::<bool>(), ranges()), 0..12),
            within in ranges(),
        ) {
            let (mut set, mut flags) = (Ranges::default(), [false; BYTES]);
            for (adds, range) in steps {
                flags[range.clone()].fill(adds);
                match adds {
                    true => set.add(range),
                    false => set.remove(&range),
                }
                prop_assert!(set.0.windows(2).all(|pair| pair[0].end < pair[1].start));
                prop_assert!(set.0.iter().all(|range| !range.is_empty()));
            }
            prop_assert_eq!(set.first_gap(&within), runs(&flags, within.clone(), false));
            let inside = set.first_in(&within).map(|range| {
                range.start.max(within.start)..range.end.min(within.end)
            });
            prop_assert_eq!(inside, runs(&flags, within, true));
        }
    }
}
