//! The adaptive span of a ring: the number of the ring's bytes that the sender uses.
//! The first span is chosen from the node's caches; later the receiver chooses it by measurements.
//!
//! A short span stays in the caches together with the data copied through it, so it causes the least memory traffic.
//! But if the two cores share only the last-level cache,
//! data that one core has just written or read are in a cache of this core, which the other core reaches slowly.
//! A long span is then up to twice as fast, because its lines have left that cache before they are used again (`docs/performance.md`).
//! The process that creates the node's memory knows the caches and chooses the first span ([`mpi_base::node::Sizes::for_caches`]).
//! Which span is faster also depends on the cores on which the two ranks run, on concurrent copies by other ranks,
//! and on whether a virtual machine reports its caches correctly.
//! So both spans are measured at run time ([`crate::trial`]).
//!
//! A sample is the best of [`STRETCHES`] consecutive stretches ([`STRETCH`] bytes of long data each).
//! So a stretch in which the program computed or data were also sent in the other direction does not affect the sample.
//! Messages below [`super::incoming::LONG`] are not counted.
//! If a ring began with the short span, samples begin only after much data, because the first use of the long span allocates its memory (ADR 24).
//! If a ring began with the long span, samples begin when the ring's memory has been populated.

use crate::trial::{Either, FREE, Known};
use mpi_base::ring::NEAR;
use std::time::Instant;

/// The short span in bytes.
///
/// The span and the data copied through it must fit into both cores' private caches (here 1 MiB).
/// With 64 KiB, streams of 8 KiB messages wait for space continually, at half the bandwidth.
/// Bandwidths of streams in GB/s, medians of five, with spans of 192, 384, 512 and 768 KiB:
/// messages of 8 KiB in both directions 44.5, 49.6, 51.0 and 51.9; of 256 KiB in one direction 53.8, 54.2, 54.3 and 55.0;
/// with a separate buffer for each message: 256 KiB 36.6, 34.6, 30.1 and 17.6; 1 MiB 20.4, 19.3, 15.5 and 12.7.
pub(super) const SHORT: usize = NEAR;

/// Number of bytes whose transfer time is measured (a stretch).
const STRETCH: usize = 512 << 10;
/// Number of stretches in a sample.
const STRETCHES: u32 = 4;
/// Number of stretches before sampling starts, indexed by the span used at first:
/// 2048 (1 GiB of data) for the short span, 64 (32 MiB) for the long one.
/// A page of the long span is populated for each 32 KiB, so a span of 2 MiB is complete after 16 MiB.
/// Samples before that would contain accesses to new pages.
const PATIENCE: [u32; 2] = [2048, 64];
/// The measured cost of the span that was not used at first is multiplied by this factor, so it must be this much faster.
const MARGIN: f32 = 1.125;
/// The argument `price` of [`Known::next`]: a span that is twice as slow as the other is sampled once in this number of samples.
const PRICE: f32 = 32.0;

/// The part of a ring that the sender uses.
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
    /// Returns the span in bytes for a ring of `ring` bytes.
    pub fn of(self, ring: usize) -> usize {
        match self {
            Span::Short => ring.min(SHORT),
            Span::Long => ring,
        }
    }
}

/// The measurements of one ring, which choose its span.
pub(super) struct Spans {
    known: Known<Span>,
    /// The span used at first. `now` is the span used at present.
    first: Span,
    now: Span,
    /// Number of stretches so far, until samples begin.
    before: u32,
    /// The current stretch: number of bytes received, and start time.
    come: usize,
    began: Option<Instant>,
    /// The current sample: number of stretches, and cost of the best one in nanoseconds per byte.
    stretches: u32,
    best: f32,
}

impl Spans {
    /// Creates the measurements for a ring of `ring` bytes of which senders use `span` bytes at first. Returns `None` if the ring is too short for a choice.
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

    /// Counts `bytes` received bytes of long data. Returns the span to use from now on if it changes.
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
            // The first stretch with another span is not measured: it has cold caches, or contains data sent with the old span.
            self.began = None;
            next
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// Simulates the transfer of `mib` MiB; `costs` has the cost of each span in nanoseconds per KiB. Returns how many MiB used the long span.
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
            // The program computes after three of four stretches, so only one stretch in four shows the cost of the span.
            now += Duration::from_micros(if stretch % 4 == 0 { 0 } else { 700 });
            now += Duration::from_micros(if used == Span::Long { 20 } else { 40 });
            through_long += u32::from(used == Span::Long);
            used = spans.end_stretch(now).unwrap_or(used);
        }
        assert!(through_long > 1_700, "{through_long} of 2,000");
    }
}
