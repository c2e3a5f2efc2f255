//! Which of two ways is the faster one, found out by trying.
//!
//! Each way is tried a few times, then the better one is taken, and the other one tried again once in a while,
//! since processes move, and programs change what they do.
//! What a sample is, and what for it is taken, is the business of the caller: of messages `pml/ob1/protocol_choice.rs`, of collectives `coll/src/shm/protocol_choice.rs`,
//! of rings `btl/sm/span.rs`.

use std::time::Instant;

/// One of two ways to do the same.
pub trait Either: Copy + PartialEq {
    /// Both of them; the first is tried first.
    const BOTH: [Self; 2];

    /// Its place among both.
    fn index(self) -> usize {
        usize::from(self != Self::BOTH[0])
    }

    /// The one that it is not.
    fn other(self) -> Self {
        Self::BOTH[1 - self.index()]
    }
}

/// How long data come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Read from the memory of the process that has them, in one copy by the system.
    Copy,
    /// Through shared memory, copied by both programs, a part after the other.
    Fragments,
}

impl Either for Way {
    const BOTH: [Way; 2] = [Way::Copy, Way::Fragments];
}

/// Samples of a way before it is compared; the best of them counts, because the first ones find everything cold, and nothing makes a sample too short.
const TRIES: usize = 3;
/// After so many samples the way that is not the better one is tried anew: soon at first and then less and less often, unless the better one changes.
const AGAIN: std::ops::RangeInclusive<u16> = 8..=256;
/// A way that is tried anew is given up at the first sample if that is so many times worse than the other way.
const CLEARLY: f32 = 1.25;
/// What costs more than the other way, and so many times as much again, is not put off longer for that: it may have been chance.
const DEAREST: f32 = 8.0;
/// A sample counts for no more than so many times what is known: another process may have had the core.
const OUTLIER: f32 = 4.0;
/// What part of a change is believed at once.
const SLOWLY: f32 = 1.0 / 8.0;

/// The price of [`Known::next`] where trying costs nothing but the one that is tried.
pub const FREE: f32 = 0.0;

/// Orders of size that are told apart, from [`SMALLEST`] bytes on; the last one is everything beyond.
pub const ORDERS: usize = 9;
const SMALLEST: u32 = 14;

pub fn order_of(bytes: u64) -> usize {
    let order = bytes.max(1).ilog2().saturating_sub(SMALLEST);
    (order as usize).min(ORDERS - 1)
}

/// What is known of both ways, for data of one order of size for example.
#[derive(Clone, Copy)]
pub struct Known<W = Way> {
    /// Of either way.
    ways: [Tried; 2],
    /// The way that was the better one last.
    better: Option<W>,
    /// Samples since the other one was last tried, and after how many it is tried again.
    since: u16,
    again: u16,
}

#[derive(Clone, Copy, Default)]
struct Tried {
    samples: [f32; TRIES],
    tries: usize,
    /// Nanoseconds for a byte, once it has been tried often enough.
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
    /// How often a way has been tried lately.
    #[cfg(any(test, feature = "testing"))]
    pub fn tries(&self, way: W) -> usize {
        self.ways[way.index()].tries
    }

    /// How much longer the first tries of a way go on.
    pub fn missing(&self, way: W) -> usize {
        match self.ways[way.index()] {
            Tried {
                cost: 0.0, tries, ..
            } => TRIES - tries,
            _ => 0,
        }
    }

    /// Whether nothing has been tried.
    pub fn is_new(&self) -> bool {
        self.ways.iter().all(|way| way.tries == 0)
    }

    /// What others may believe of something like it, and try anew when its turn comes; nothing as long as both ways are not known.
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

    /// Whether a way is taken to find out what it costs, and not because it is the better one.
    pub fn only_tries(&self, way: W) -> bool {
        let other = way.other();
        self.better == Some(other) || self.ways[other.index()].tries < TRIES
    }

    /// The way that is taken, once both are known.
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

    /// The way for the next sample.
    ///
    /// The worse way is tried again when it has been left out so many times, and `price` times as often as it costs more than the better one;
    /// the first time it has a price of its own.
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

/// The time by which samples are measured: the clock, unless a test has said what each way costs.
#[inline]
pub fn now() -> Instant {
    #[cfg(feature = "testing")]
    if let Some(told) = costs::now() {
        return told;
    }
    Instant::now()
}

/// What tests say of the ways and see of them.
///
/// Once a test has said what a sample of each way costs, samples are measured by a clock of their thread
/// that goes forward by that cost when a sample ends, and by nothing else:
/// what the test claims does not depend on the machine's load.
#[cfg(feature = "testing")]
pub mod costs {
    use super::{Either, Way};
    use std::cell::Cell;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    use std::time::{Duration, Instant};

    /// Of a sample of either way, in nanoseconds; 0 as long as a test has said nothing.
    static NANOS: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
    static TAKEN: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

    thread_local! {
        static CLOCK: Cell<Option<Instant>> = const { Cell::new(None) };
    }

    /// From now on a sample of this way costs so much.
    pub fn set(way: Way, cost: Duration) {
        NANOS[way.index()].store(cost.as_nanos() as u64, Relaxed);
    }

    /// How often a way has been taken by all ranks of this process.
    pub fn taken(way: Way) -> u64 {
        TAKEN[way.index()].load(Relaxed)
    }

    /// A sample of this way ends.
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

    /// Of so many samples, those that tried the way that costs more.
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
        // Something that looks a thousand times worse is tried again all the same.
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
