//! Adaptive span of a ring: the number of bytes that the sender uses.
//! The node's caches determine it first, later the receiver chooses it by measurement.
//!
//! A short span stays in the caches together with the data copied through it, so its memory traffic is the lowest.
//! But if the two cores share only the last-level cache,
//! data that one core has just written or read are in a cache that the other core reaches slowly.
//! A span whose lines have left that cache again is up to twice as fast (`docs/performance.md`).
//! The creator of the node's memory knows the caches and chooses the span at the start ([`mpi_base::node::Sizes::for_caches`]).
//! The better span also depends on the cores of the ranks, on other copies,
//! and on whether a virtual machine reports its caches truthfully,
//! so both spans are measured at run time ([`crate::trial`]).
//!
//! A sample is the best of a few stretches of long data that arrived one after the other,
//! so a stretch in which the program computed or the other direction was active does not count.
//! Messages below [`super::incoming::LONG`] are not counted.
//! A ring that began with the short span is sampled only after much data: the first try of the long span allocates its memory (ADR 24).
//! A ring that began with the long span has that memory, so sampling starts after a few uses.

use crate::trial::{Either, FREE, Known};
use mpi_base::ring::NEAR;
use std::time::Instant;

/// The short span in bytes.
///
/// The span and the data copied through it must fit both cores' nearest caches (here 1 MiB).
/// With 64 KiB, streams of 8 KiB messages wait for space all the time, at half the bandwidth.
/// Streams one way and both ways, GB/s, medians of five, with spans of 192, 384, 512 and 768 KiB:
/// 8 KiB both ways 44.5, 49.6, 51.0 and 51.9, 256 KiB one way 53.8, 54.2, 54.3 and 55.0;
/// with a buffer for each message, 256 KiB 36.6, 34.6, 30.1 and 17.6, 1 MiB 20.4, 19.3, 15.5 and 12.7.
pub(super) const SHORT: usize = NEAR;

/// Bytes per time measurement (a stretch).
const STRETCH: usize = 512 << 10;
/// Stretches per sample.
const STRETCHES: u32 = 4;
/// Number of stretches before sampling starts, indexed by the span used at first:
/// 2048 (1 GiB of data) for the short span, 64 (32 MiB) for the long one.
const PATIENCE: [u32; 2] = [2048, 64];
/// The span that was not used at first must be faster by this factor.
const MARGIN: f32 = 1.125;
/// The `price` in [`Known::next`]: a span that costs twice as much as the other is sampled once in this number of samples.
const PRICE: f32 = 32.0;

/// How much of a ring is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Span {
    Short,
    /// The whole ring.
    Long,
}

impl Either for Span {
    const BOTH: [Span; 2] = [Span::Short, Span::Long];
}

impl Span {
    /// Returns the span in bytes, of a ring of `ring` bytes.
    pub fn of(self, ring: usize) -> usize {
        match self {
            Span::Short => ring.min(SHORT),
            Span::Long => ring,
        }
    }
}

/// Measurements of one ring.
pub(super) struct Spans {
    known: Known<Span>,
    /// The span used at first. `now`: the span used at present.
    first: Span,
    now: Span,
    /// Number of stretches until sampling starts.
    before: u32,
    /// The current stretch: bytes received, and start time.
    come: usize,
    began: Option<Instant>,
    /// The current sample: number of stretches, and nanoseconds per byte in the best of them.
    stretches: u32,
    best: f32,
}

impl Spans {
    /// Creates the measurements of a ring of `ring` bytes, of which senders use `span` bytes at first; `None` if the ring offers no choice.
    pub fn new(ring: usize, span: usize) -> Option<Spans> {
        let first = match span > SHORT {
            true => Span::Long,
            false => Span::Short,
        };
        (ring > SHORT).then(|| Spans {
            known: Known::default(),
            first,
            now: first,
            before: 0,
            come: 0,
            began: None,
            stretches: 0,
            best: 0.0,
        })
    }

    /// Counts received bytes of long data; returns the span to use from now on, if it changes.
    #[inline]
    pub fn count(&mut self, bytes: usize) -> Option<Span> {
        self.come += bytes;
        match self.come < STRETCH {
            true => None,
            false => self.end_stretch(Instant::now()),
        }
    }

    #[cold]
    fn end_stretch(&mut self, now: Instant) -> Option<Span> {
        let bytes = std::mem::take(&mut self.come);
        if self.before < PATIENCE[self.first.index()] {
            self.before += 1;
            return None;
        }
        let began = self.began.replace(now)?;
        let took = now.saturating_duration_since(began);
        let cost = took.as_nanos() as f32 / bytes as f32;
        self.best = match self.stretches {
            0 => cost,
            _ => self.best.min(cost),
        };
        self.stretches += 1;
        if self.stretches < STRETCHES {
            return None;
        }
        self.stretches = 0;
        let used = self.now;
        let cost = match used == self.first {
            true => self.best,
            false => self.best * MARGIN,
        };
        self.known.learn(used, cost);
        let next = self.known.next(FREE, PRICE);
        self.now = next;
        (next != used).then(|| {
            // The first stretch with the other span runs with cold caches, or with leftovers of the old one.
            self.began = None;
            next
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// Simulates `mib` MiB at costs per span in nanoseconds per KiB; returns how many MiB went through the long span.
    fn long(spans: &mut Spans, now: &mut Instant, mib: u32, costs: [u64; 2]) -> u32 {
        let mut used = spans.now;
        let mut long = 0;
        for _ in 0..mib * 2 {
            spans.come = STRETCH;
            *now += Duration::from_nanos(costs[used.index()] * (STRETCH as u64 >> 10));
            long += u32::from(used == Span::Long);
            used = spans.end_stretch(*now).unwrap_or(used);
        }
        long / 2
    }

    const RING: usize = 2 << 20;

    fn short_at_first() -> Spans {
        Spans::new(RING, SHORT).expect("a ring that is longer than the short span")
    }

    #[test]
    fn a_node_whose_cores_share_the_last_cache_only_begins_with_the_long_span() {
        for (costs, is_long) in [([50, 50], true), ([100, 50], true), ([25, 50], false)] {
            let mut now = Instant::now();
            let mut spans = Spans::new(RING, RING).unwrap();
            let at_first = PATIENCE[1] / 2;
            assert_eq!(long(&mut spans, &mut now, at_first, costs), at_first);
            long(&mut spans, &mut now, 20, costs);
            let through_long = long(&mut spans, &mut now, 1_000, costs);
            assert_eq!(through_long > 900, is_long, "{costs:?}: {through_long} MiB");
            assert_eq!(
                through_long < 100,
                !is_long,
                "{costs:?}: {through_long} MiB"
            );
        }
        assert!(Spans::new(SHORT, SHORT).is_none());
    }

    #[test]
    fn the_better_part_is_used_and_the_other_one_tried_now_and_then() {
        for (costs, is_long) in [([100, 50], true), ([50, 100], false)] {
            let (mut spans, mut now) = (short_at_first(), Instant::now());
            assert_eq!(long(&mut spans, &mut now, PATIENCE[0] / 2, costs), 0);
            long(&mut spans, &mut now, 20, costs);
            let through_long = long(&mut spans, &mut now, 1_000, costs);
            let worse = match is_long {
                true => 1_000 - through_long,
                false => through_long,
            };
            assert!(
                (1..60).contains(&worse),
                "{costs:?}: {worse} MiB the worse way"
            );
        }
    }

    #[test]
    fn a_part_that_has_become_worse_is_left() {
        let (mut spans, mut now) = (short_at_first(), Instant::now());
        long(&mut spans, &mut now, PATIENCE[0] / 2 + 200, [100, 50]);
        let through_long = long(&mut spans, &mut now, 200, [100, 300]);
        assert!(through_long < 50, "{through_long} MiB");
    }

    #[test]
    fn short_pauses_are_not_measured() {
        let (mut spans, mut now) = (short_at_first(), Instant::now());
        let mut used = Span::Short;
        let mut through_long = 0;
        for stretch in 0..PATIENCE[0] + 2_000 {
            spans.come = STRETCH;
            // The program computes after three of four stretches, and more often while the better span is used.
            now += Duration::from_micros(if stretch % 4 == 0 { 0 } else { 700 });
            now += Duration::from_micros(if used == Span::Long { 20 } else { 40 });
            through_long += u32::from(used == Span::Long);
            used = spans.end_stretch(now).unwrap_or(used);
        }
        assert!(through_long > 1_700, "{through_long} of 2,000");
    }
}
