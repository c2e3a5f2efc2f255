//! How much of a ring its sender is to use: found out by trying, by the receiver.
//!
//! A short part of a ring stays in the caches with what is copied through it, so that memory for each message costs least;
//! but where the two cores share only the last cache, what one core has just written or read lies in a cache that the other reaches slowly,
//! and a part so long that it has left that cache again goes up to twice as fast (`docs/performance.md`).
//! Which it is depends on the machine, on where the ranks run, and on what else is copied, so it is measured while the program runs ([`crate::trial`]).
//!
//! A sample is the best of a few times in which a good deal of long data came one after the other,
//! so that a time in which the program computed, or the other direction was at work, says nothing.
//! Short messages are not counted; they hardly ever leave the beginning of the ring.
//! A program that moves little is left alone: the first try of the long part has its memory found, and cost about 4 ms where that was measured (ADR 24).

use crate::trial::{Either, FREE, Known};
use std::time::Instant;

/// The part in bytes that every sender begins with.
///
/// It has to lie in the nearest caches of both cores with what is copied through it, which are of 1 MiB where this was measured;
/// with 64 KiB, streams of 8 KiB messages wait for room all the time, and go half as fast.
/// Streams one way and both ways, GB/s, medians of five, with parts of 192, 384, 512 and 768 KiB:
/// 8 KiB both ways 44.5, 49.6, 51.0 and 51.9, 256 KiB one way 53.8, 54.2, 54.3 and 55.0;
/// with memory for each message, 256 KiB 36.6, 34.6, 30.1 and 17.6, 1 MiB 20.4, 19.3, 15.5 and 12.7.
pub(super) const SHORT: usize = 384 << 10;

/// After so many bytes it is looked how long they took.
const STRETCH: usize = 512 << 10;
/// So many stretches make a sample.
const STRETCHES: u32 = 4;
/// Before so many stretches have come nothing is tried.
const PATIENCE: u32 = 2048;
/// The long part has to be so much better, because it takes memory and the room of others in the caches.
const MARGIN: f32 = 1.125;
/// What the worse part may cost: one in so many, when it costs twice as much.
const PRICE: f32 = 32.0;

/// What part of a ring is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Span {
    Short,
    /// All of it.
    Long,
}

impl Either for Span {
    const BOTH: [Span; 2] = [Span::Short, Span::Long];
}

impl Span {
    /// In bytes, of a ring of so many.
    pub fn of(self, ring: usize) -> usize {
        match self {
            Span::Short => ring.min(SHORT),
            Span::Long => ring,
        }
    }
}

/// What is known of one ring.
#[derive(Default)]
pub(super) struct Spans {
    known: Known<Span>,
    now: Option<Span>,
    /// How many stretches came before anything was tried.
    before: u32,
    /// The stretch under way: how much of it has come, and when it began.
    come: usize,
    began: Option<Instant>,
    /// The sample under way: how many stretches it has, and nanoseconds for a byte in the best of them.
    stretches: u32,
    best: f32,
}

impl Spans {
    /// So many bytes of long data have come; answers the part that is to be used from now on, if that changes.
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
        if self.before < PATIENCE {
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
        let used = self.now.unwrap_or(Span::Short);
        let cost = match used {
            Span::Short => self.best,
            Span::Long => self.best * MARGIN,
        };
        self.known.learn(used, cost);
        let next = self.known.next(FREE, PRICE);
        self.now = Some(next);
        (next != used).then(|| {
            // The first stretch with another part finds it cold, or full of what came before.
            self.began = None;
            next
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// Has so many MiB come, at a cost for each part in nanoseconds for a KiB, and answers how many of them came through the long part.
    fn long(spans: &mut Spans, now: &mut Instant, mib: u32, costs: [u64; 2]) -> u32 {
        let mut used = spans.now.unwrap_or(Span::Short);
        let mut long = 0;
        for _ in 0..mib * 2 {
            spans.come = STRETCH;
            *now += Duration::from_nanos(costs[used.index()] * (STRETCH as u64 >> 10));
            long += u32::from(used == Span::Long);
            used = spans.end_stretch(*now).unwrap_or(used);
        }
        long / 2
    }

    #[test]
    fn the_better_part_is_used_and_the_other_one_tried_now_and_then() {
        for (costs, is_long) in [([100, 50], true), ([50, 100], false)] {
            let (mut spans, mut now) = (Spans::default(), Instant::now());
            assert_eq!(long(&mut spans, &mut now, PATIENCE / 2, costs), 0);
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
        let (mut spans, mut now) = (Spans::default(), Instant::now());
        long(&mut spans, &mut now, PATIENCE / 2 + 200, [100, 50]);
        let through_long = long(&mut spans, &mut now, 200, [100, 300]);
        assert!(through_long < 50, "{through_long} MiB");
    }

    #[test]
    fn short_pauses_say_nothing() {
        let (mut spans, mut now) = (Spans::default(), Instant::now());
        let mut used = Span::Short;
        let mut through_long = 0;
        for stretch in 0..PATIENCE + 2_000 {
            spans.come = STRETCH;
            // The program computes after three of four stretches, and more often while the better part is used.
            now += Duration::from_micros(if stretch % 4 == 0 { 0 } else { 700 });
            now += Duration::from_micros(if used == Span::Long { 20 } else { 40 });
            through_long += u32::from(used == Span::Long);
            used = spans.end_stretch(now).unwrap_or(used);
        }
        assert!(through_long > 1_700, "{through_long} of 2,000");
    }
}
