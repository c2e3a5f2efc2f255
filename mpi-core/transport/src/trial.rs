//! Adaptive choice between two alternatives (*ways*), such as two protocols, by measurement.
//!
//! Each way is sampled a few times, then the faster way is used. The slower way is sampled again at intervals,
//! because processes migrate and programs change their behaviour.
//! The caller defines what a sample is. Its cost is the time per byte.
//! The users are messages (`pml/ob1/protocol_choice.rs`), collectives (`coll/src/shm/protocol_choice.rs`),
//! and shared-memory rings (`btl/sm/span.rs`).

use std::time::Instant;

/// A type with two values, the two ways.
pub trait Either: Copy + PartialEq {
    /// Both ways; the first is sampled first.
    const BOTH: [Self; 2];

    /// Returns the index of this way in [`Either::BOTH`].
    fn index(self) -> usize {
        usize::from(self != Self::BOTH[0])
    }

    /// Returns the other way.
    fn other(self) -> Self {
        Self::BOTH[1 - self.index()]
    }
}

/// The two transfer protocols of long data, as ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Single copy: the receiver reads the sender's memory by a system call of the kernel.
    Copy,
    /// Fragments through shared memory:
    /// the sender copies each fragment into it, and the receiver copies the fragment out of it.
    Fragments,
}

impl Either for Way {
    const BOTH: [Way; 2] = [Way::Copy, Way::Fragments];
}

/// Number of samples of each way before the ways are compared.
/// Only the fastest of these samples counts, because the first ones run with cold caches
/// and a disturbance can only lengthen a sample.
const TRIES: usize = 3;
/// Number of samples of the faster way after which the slower way is sampled again.
/// The number doubles from the start to the end of this range, and begins again when the faster way changes.
const AGAIN: std::ops::RangeInclusive<u16> = 8..=256;
/// A new series of samples ends after the first sample if this is at least this number of times as expensive as the other way.
const CLEARLY: f32 = 1.25;
/// Maximum of the relative extra cost that defers samples of the slower way, because an extreme measurement may be an outlier.
const DEAREST: f32 = 8.0;
/// A sample counts at most as this number of times the known cost,
/// because another process may have used the core during the sample.
const OUTLIER: f32 = 4.0;
/// Weight of a new sample in the moving average of a way's cost.
const SLOWLY: f32 = 1.0 / 8.0;

/// Value of the arguments `first` and `price` of [`Known::next`]
/// with which the slower way's extra cost does not defer its samples.
pub const FREE: f32 = 0.0;

/// Number of size classes, by powers of two from 2^`SMALLEST` bytes; the last class has no upper bound.
pub const ORDERS: usize = 9;
pub const SMALLEST: u32 = 14;

pub fn order_of(bytes: u64) -> usize {
    let order = bytes.max(1).ilog2().saturating_sub(SMALLEST);
    (order as usize).min(ORDERS - 1)
}

/// Number of transfers of a size class after which the second way is first tried, if it is tried late.
const LATE: u32 = 128;

/// Returns the number of transfers of a size class before the first trial of the second way:
/// classes of at least `late_from` bytes try it late.
///
/// The first trials of fragments touch new pages of shared memory.
/// Three trials with long data take as long as 20 transfers by the way in use or more;
/// a program with a few dozen transfers does not amortise them.
pub fn first_trial(order: usize, late_from: u64) -> u32 {
    match order < order_of(late_from) {
        true => 0,
        false => LATE,
    }
}

/// The measurements of both ways, for example for one size class.
#[derive(Clone, Copy)]
pub struct Known<W = Way> {
    /// The measurements of each way, indexed by [`Either::index`].
    ways: [Tried; 2],
    /// The faster way at the latest comparison; `None` before the first comparison.
    better: Option<W>,
    /// Number of samples since the slower way was last sampled.
    /// `again` is the number of samples after which the slower way is sampled again.
    since: u16,
    again: u16,
}

#[derive(Clone, Copy, Default)]
struct Tried {
    samples: [f32; TRIES],
    tries: usize,
    /// Cost in nanoseconds per byte; 0 before [`TRIES`] samples have been taken.
    cost: f32,
}

impl Tried {
    fn learn(&mut self, cost: f32) {
        if let Some(sample) = self.samples.get_mut(self.tries) {
            *sample = cost;
            self.tries += 1;
            if self.tries == TRIES {
                self.cost = self.samples.into_iter().fold(f32::INFINITY, f32::min);
            }
        } else {
            self.cost += (cost.min(self.cost * OUTLIER) - self.cost) * SLOWLY;
        }
    }
}

impl<W> Default for Known<W> {
    fn default() -> Known<W> {
        Known {
            ways: [Tried::default(); 2],
            better: None,
            since: 0,
            again: 0,
        }
    }
}

impl<W: Either> Known<W> {
    /// Returns the number of samples of a way in its present series.
    #[cfg(any(test, feature = "testing"))]
    pub fn tries(&self, way: W) -> usize {
        self.ways[way.index()].tries
    }

    /// Returns the number of samples of a way that are missing for the first comparison.
    pub fn missing(&self, way: W) -> usize {
        match self.ways[way.index()] {
            Tried {
                cost: 0.0, tries, ..
            } => TRIES - tries,
            _ => 0,
        }
    }

    /// Returns true if a way has never been sampled.
    pub fn has_no_sample(&self, way: W) -> bool {
        self.missing(way) == TRIES
    }

    /// Returns true if there is no sample of either way.
    pub fn is_new(&self) -> bool {
        self.ways.iter().all(|way| way.tries == 0)
    }

    /// Returns a copy as the initial state for a similar case, such as the next size class. Returns an empty state unless both ways have been measured.
    pub fn believed(&self) -> Known<W> {
        match self.better {
            Some(_) => Known {
                ways: self.ways.map(|way| Tried {
                    tries: TRIES,
                    ..way
                }),
                since: 0,
                again: *AGAIN.start(),
                ..*self
            },
            None => Known::default(),
        }
    }

    /// Returns true if a way is used only to sample it again, and not because it is the faster way.
    pub fn only_tries(&self, way: W) -> bool {
        let other = way.other();
        self.better == Some(other) || self.ways[other.index()].tries < TRIES
    }

    /// Returns the faster way; `None` before both ways have been measured.
    pub fn better(&self) -> Option<W> {
        self.better
    }

    pub fn learn(&mut self, way: W, cost: f32) {
        let other = self.ways[way.other().index()];
        let tried = &mut self.ways[way.index()];
        let anew = tried.tries < TRIES && tried.cost > 0.0;
        if anew && cost > other.cost * CLEARLY {
            (tried.tries, tried.cost) = (TRIES, cost);
        } else {
            tried.learn(cost);
        }
    }

    /// Returns the way for the next sample.
    ///
    /// The slower way is sampled again after `again` samples of the faster way, but not before `price` times its relative extra cost.
    /// When it is sampled again for the first time, `first` replaces `price`.
    pub fn next(&mut self, first: f32, price: f32) -> W {
        if let Some(way) = W::BOTH
            .into_iter()
            .find(|&way| self.ways[way.index()].tries < TRIES)
        {
            return way;
        }
        let better = match self.ways[0].cost <= self.ways[1].cost {
            true => W::BOTH[0],
            false => W::BOTH[1],
        };
        if self.better != Some(better) {
            (self.better, self.again) = (Some(better), *AGAIN.start());
        }
        self.since = self.since.saturating_add(1);
        let dearer = self.ways[better.other().index()].cost / self.ways[better.index()].cost - 1.0;
        let price = match self.again == *AGAIN.start() {
            true => first,
            false => price,
        };
        let worth = price * dearer.min(DEAREST);
        if self.since < self.again || f32::from(self.since) < worth {
            return better;
        }
        (self.since, self.again) = (0, (2 * self.again).min(*AGAIN.end()));
        self.ways[better.other().index()].tries = 0;
        better.other()
    }
}

/// Returns the present time for measuring samples: the real time, unless a test has set the cost of each way.
#[inline]
pub fn now() -> Instant {
    #[cfg(feature = "testing")]
    if let Some(told) = costs::now() {
        return told;
    }
    Instant::now()
}

/// Simulated costs, and counters of samples, for tests.
///
/// After a test has set the cost of a sample of each way, samples are measured by a clock per thread.
/// The clock advances only at the end of a sample, by the cost of the sample's way.
/// So the test does not depend on the machine's load.
#[cfg(feature = "testing")]
pub mod costs {
    use super::{Either, Way};
    use std::cell::Cell;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    use std::time::{Duration, Instant};

    /// Cost of a sample of each way in nanoseconds; both 0 until a test sets them.
    static NANOS: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
    static TAKEN: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

    thread_local! {
        static CLOCK: Cell<Option<Instant>> = const { Cell::new(None) };
    }

    /// Sets the cost of a sample of a way.
    pub fn set(way: Way, cost: Duration) {
        NANOS[way.index()].store(cost.as_nanos() as u64, Relaxed);
    }

    /// Returns the number of samples of a way that all ranks in this process have ended.
    pub fn taken(way: Way) -> u64 {
        TAKEN[way.index()].load(Relaxed)
    }

    /// Ends a sample of a way: advances the clock and counts the sample.
    pub fn end(way: Way) {
        TAKEN[way.index()].fetch_add(1, Relaxed);
        if let Some(began) = now() {
            let cost = Duration::from_nanos(NANOS[way.index()].load(Relaxed));
            CLOCK.set(Some(began + cost));
        }
    }

    pub(super) fn now() -> Option<Instant> {
        let told = NANOS.iter().any(|nanos| nanos.load(Relaxed) > 0);
        told.then(|| {
            let now = CLOCK.get().unwrap_or_else(Instant::now);
            CLOCK.set(Some(now));
            now
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the indices of those of the next `samples` samples that used the more expensive way.
    fn tried(known: &mut Known, samples: u32, price: f32, costs: [f32; 2]) -> Vec<u32> {
        let dearer = match costs[0] > costs[1] {
            true => Way::Copy,
            false => Way::Fragments,
        };
        let mut tried = Vec::new();
        for i in 0..samples {
            let way = known.next(FREE, price);
            known.learn(way, costs[way as usize]);
            tried.extend((way == dearer).then_some(i));
        }
        tried
    }

    #[test]
    fn what_costs_much_more_is_tried_less_often_if_trying_has_a_price() {
        let costs = [1.0, 3.0];
        let first = [3, 4, 5];
        let free = tried(&mut <Known>::default(), 80, FREE, costs);
        assert_eq!(free, [&first[..], &[13, 29, 61]].concat());
        let priced = tried(&mut <Known>::default(), 250, 50.0, costs);
        assert_eq!(priced, [&first[..], &[13, 113, 213]].concat());
        // A way that seems to be a thousand times as expensive is also sampled again.
        let far = tried(&mut <Known>::default(), 1000, 50.0, [1000.0, 1.0]);
        assert_eq!(far, [0, 1, 2, 13, 413, 813]);
    }

    #[test]
    fn what_is_cold_at_first_is_not_taken_for_slow() {
        let mut known = <Known>::default();
        let mut samples = 0;
        for _ in 0..40 {
            let way = known.next(FREE, 50.0);
            samples += u32::from(way == Way::Fragments);
            let cold = way == Way::Fragments && samples <= 2;
            known.learn(way, if cold { 20.0 } else { [6.0, 1.0][way as usize] });
        }
        assert_eq!(known.better(), Some(Way::Fragments));
        assert_eq!(samples, 36);
    }

    #[test]
    fn a_way_is_missing_until_it_has_been_tried_often_enough_once() {
        let mut known = <Known>::default();
        assert_eq!(known.missing(Way::Copy), TRIES);
        known.learn(Way::Copy, 1.0);
        assert_eq!(known.missing(Way::Copy), TRIES - 1);
        tried(&mut known, 100, FREE, [1.0, 2.0]);
        for way in [Way::Copy, Way::Fragments] {
            assert_eq!(known.missing(way), 0);
        }
        assert_eq!(known.better(), Some(Way::Copy));
    }

    #[test]
    fn orders_of_size_are_told_apart_up_to_a_point() {
        assert_eq!(order_of(0), 0);
        assert_eq!(order_of((32 << 10) - 1), 0);
        assert_eq!(order_of(32 << 10), 1);
        assert_eq!(order_of(u64::MAX), ORDERS - 1);
    }
}
