//! Which way the data of long messages come sooner from one peer: in one copy by the system, or in fragments, copied by both programs.
//!
//! Neither is the better one everywhere.
//! The system looks up every page before it copies it; programs copy twice, which costs next to nothing where the two cores share a cache and everything where they do not;
//! and fragments need a sender that is there.
//! So it is measured, for each peer and each order of size: each way is tried a few times, then the better one is taken,
//! and the other one tried again once in a while, since processes move, and programs change what they do between their messages.
//!
//! What is measured is the time from the moment when there is something to fetch until there is nothing left, over the bytes that came meanwhile.
//! Messages of one way that are under way together are one sample, so that a window of messages and a single one are judged alike.
//! A window goes one way, but when copies are only tried there: once there are enough of them for a sample, the rest of it comes in fragments.
//! (Not the other way round: fragments are asked for all at once, and would wait for the copies that come after them.)
//!
//! Where ranks share cores, what passes between is mostly others' time, in which a core does something useful.
//! There fragments cost what both sides work on them: twice what the receiver copies, and a switch wherever it had to wait for more;
//! but no less than their part of the time, or a sender that computes for long between its messages would keep every receiver waiting that could read its data at once.
//!
//! What has been found for shorter data is believed of the next order of size, until the other way has its turn there too:
//! three windows that go the worse way are a fifth of the time of a short program.

use crate::trial::{self, Known, ORDERS, order_of};
use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

pub use crate::trial::Way;

/// Trying the worse way again costs about one part in so many: a sample may be a window of 64 messages, and the worse way four times worse.
const PRICE: f32 = 32.0;
/// Messages that never leave a gap are a sample after so long.
const LONGEST: Duration = Duration::from_millis(20);
/// So many copies under way together are enough for a sample.
const ENOUGH: u32 = 16;

/// Where cores are shared: a receiver that has got nothing for so long has given its core away, and that takes so long.
const AWAY: Duration = Duration::from_micros(4);
const SWITCH: Duration = Duration::from_nanos(1600);

/// What is known of one peer.
#[derive(Default)]
pub struct ProtocolChooser {
    /// How many ranks share a core.
    sharing: u32,
    known: [Cell<Known>; ORDERS],
    /// Of either way, as long as messages are under way.
    periods: [Cell<Option<Period>>; 2],
    /// The way of what begins as long as there is a period.
    turn: Cell<Option<Way>>,
}

/// A time in which there is always a message under way that comes the same way.
#[derive(Clone, Copy)]
struct Period {
    order: usize,
    began: Instant,
    bytes: u64,
    /// What both sides have worked on fragments, and until when.
    work: Duration,
    worked: Instant,
    /// How many messages are under way, and how many there have been.
    open: u32,
    begun: u32,
    /// Whether it says something of its way: all its messages are of one order, none was given up, and nothing else long came meanwhile.
    counts: bool,
}

impl Period {
    fn new(order: usize, began: Instant) -> Period {
        Period {
            order,
            began,
            bytes: 0,
            work: Duration::ZERO,
            worked: began,
            open: 0,
            begun: 0,
            counts: true,
        }
    }
}

impl ProtocolChooser {
    /// Of a peer that nothing is known of, where so many ranks share a core.
    pub fn where_cores_have(ranks: u32) -> ProtocolChooser {
        ProtocolChooser {
            sharing: ranks,
            ..ProtocolChooser::default()
        }
    }

    fn begin(&self, bytes: u64, now: Instant) -> Way {
        let order = order_of(bytes);
        let way = match self.turn.get() {
            Some(Way::Copy) if self.copies_suffice() => Way::Fragments,
            Some(way) => way,
            None => self.next(order),
        };
        self.turn.set(Some(way));
        let period = &self.periods[way as usize];
        let mut under_way = period.get().unwrap_or_else(|| Period::new(order, now));
        under_way.open += 1;
        under_way.begun += 1;
        under_way.counts &= under_way.order == order;
        period.set(Some(under_way));
        way
    }

    /// Whether copies are only tried, and as many are under way as a sample takes.
    fn copies_suffice(&self) -> bool {
        self.periods[Way::Copy as usize]
            .get()
            .is_some_and(|copies| {
                copies.begun >= ENOUGH && self.known[copies.order].get().only_tries(Way::Copy)
            })
    }

    /// Data that no receive asked for have come: what is fetched meanwhile has to wait for them and says nothing of its way.
    pub(super) fn disturb(&self) {
        for period in &self.periods {
            period.set(period.get().map(|period| Period {
                counts: false,
                ..period
            }));
        }
    }

    fn is_oversubscribed(&self) -> bool {
        self.sharing > 1
    }

    /// A fragment has been copied from `began` to `now`.
    fn copied(&self, began: Instant, now: Instant) {
        let fragments = &self.periods[Way::Fragments as usize];
        fragments.set(fragments.get().map(|period| {
            let waited = began.saturating_duration_since(period.worked);
            let switch = if waited > AWAY {
                SWITCH
            } else {
                Duration::ZERO
            };
            let copying = now.saturating_duration_since(began);
            Period {
                // The sender has copied it too.
                work: period.work + 2 * copying + switch,
                worked: now,
                ..period
            }
        }));
    }

    /// A message has come that way, or is given up if there are no `bytes`.
    fn end(&self, way: Way, bytes: Option<u64>, now: impl FnOnce() -> Instant) {
        let Some(mut period) = self.periods[way as usize].get() else {
            return;
        };
        period.open -= 1;
        period.bytes += bytes.unwrap_or(0);
        period.counts &= bytes.is_some();
        let now = now();
        let took = now.saturating_duration_since(period.began);
        let over = period.open == 0;
        if period.counts && (over || took > LONGEST) {
            let known = &self.known[period.order];
            let mut learnt = known.get();
            let cost = match way {
                // Each of those that share both cores has its part of the time.
                Way::Fragments if self.is_oversubscribed() => {
                    period.work.max(took / self.sharing.saturating_mul(2))
                }
                _ => took,
            };
            learnt.learn(way, cost.as_nanos() as f32 / period.bytes as f32);
            known.set(learnt);
            if !over {
                let next = self.next(period.order);
                self.turn.set(Some(next));
                (period.began, period.bytes, period.begun) = (now, 0, 0);
                period.work = Duration::ZERO;
                // What is still to come the old way comes beside what begins the new one.
                period.counts = next == way;
            }
        }
        self.periods[way as usize].set((!over).then_some(period));
        if self.periods.iter().all(|period| period.get().is_none()) {
            self.turn.set(None);
        }
    }

    /// The way that messages of so many bytes have been found to come sooner.
    pub(super) fn better(&self, bytes: u64) -> Option<Way> {
        self.known[order_of(bytes)].get().better()
    }

    /// Whether nothing is under way.
    #[cfg(test)]
    fn is_idle(&self) -> bool {
        self.turn.get().is_none() && self.periods.iter().all(|period| period.get().is_none())
    }

    /// Whether anything was measured of messages of so many bytes.
    #[cfg(feature = "testing")]
    pub(super) fn knows(&self, bytes: u64) -> bool {
        let known = self.known[order_of(bytes)].get();
        known.tries(Way::Copy) + known.tries(Way::Fragments) > 0
    }

    fn next(&self, order: usize) -> Way {
        let mut known = self.known[order].get();
        if let (true, Some(shorter)) = (known.is_new(), order.checked_sub(1)) {
            known = self.known[shorter].get().believed();
        }
        let way = known.next(PRICE, PRICE);
        self.known[order].set(known);
        way
    }
}

/// A message under way; one that is dropped before its end was given up.
pub struct TimedTransfer {
    chooser: Rc<ProtocolChooser>,
    bytes: u64,
    way: Way,
}

impl TimedTransfer {
    /// A message of so many bytes from the peer that is chosen for.
    pub fn begin(chooser: &Rc<ProtocolChooser>, bytes: u64) -> TimedTransfer {
        TimedTransfer {
            way: chooser.begin(bytes, trial::now()),
            chooser: chooser.clone(),
            bytes,
        }
    }

    /// The way that is to be taken.
    pub fn way(&self) -> Way {
        self.way
    }

    /// Puts a fragment of it where it belongs; what that takes is work, where that counts.
    #[inline]
    pub fn put(&self, put: impl FnOnce()) {
        if !self.chooser.is_oversubscribed() {
            return put();
        }
        let began = trial::now();
        put();
        self.chooser.copied(began, trial::now());
    }

    /// All of it has come, the way that was said; answers how much that was.
    pub fn ends(mut self) -> u64 {
        let bytes = std::mem::take(&mut self.bytes);
        #[cfg(feature = "testing")]
        trial::costs::end(self.way);
        self.chooser.end(self.way, Some(bytes), trial::now);
        bytes
    }
}

impl Drop for TimedTransfer {
    fn drop(&mut self) {
        // An ended one has no bytes left, and none begins without.
        if self.bytes > 0 {
            self.chooser.end(self.way, None, trial::now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    /// Sends `messages` one after the other and answers how many came in fragments.
    fn run(
        pace: &ProtocolChooser,
        now: &mut Instant,
        messages: u32,
        cost: impl Fn(Way) -> u64,
    ) -> u32 {
        let mut fragmented = 0;
        for _ in 0..messages {
            let way = pace.begin(1 << 16, *now);
            fragmented += u32::from(way == Way::Fragments);
            *now += Duration::from_nanos(cost(way));
            pace.end(way, Some(1 << 16), || *now);
        }
        fragmented
    }

    #[test]
    fn the_better_way_is_taken_and_the_other_tried_now_and_then() {
        let mut now = Instant::now();
        for (copy, fragments) in [(8_000, 3_000), (3_000, 8_000)] {
            let pace = ProtocolChooser::default();
            let cost = |way| match way {
                Way::Copy => copy,
                Way::Fragments => fragments,
            };
            assert_eq!(run(&pace, &mut now, 6, cost), 3);
            let share = |fragmented: u32, messages: u32| match fragments < copy {
                true => messages - fragmented,
                false => fragmented,
            };
            // Three times as soon as that costs no more than its price allows, then after 64 and 128, and at last every 256.
            assert_eq!(share(run(&pace, &mut now, 500, cost), 500), 5);
            let often = run(&pace, &mut now, 2_560, cost);
            assert_eq!(share(often, 2_560), 10);
        }
    }

    /// Which way is found to be the better one where copies take 8 us, and `pieces` fragments `each` to be copied, so long after the one before.
    fn found(sharing: u32, pieces: u32, after: Duration, each: Duration) -> Option<Way> {
        let (pace, mut now) = (ProtocolChooser::where_cores_have(sharing), Instant::now());
        for _ in 0..7 {
            let way = pace.begin(1 << 16, now);
            match way {
                Way::Copy => now += Duration::from_micros(8),
                Way::Fragments => {
                    for _ in 0..pieces {
                        now += after;
                        pace.copied(now, now + each);
                        now += each;
                    }
                }
            }
            pace.end(way, Some(1 << 16), || now);
        }
        pace.better(1 << 16)
    }

    #[test]
    fn where_cores_are_shared_fragments_cost_what_both_work_on_them() {
        let us = Duration::from_micros;
        // Others use the 20 us in which we wait.
        assert_eq!(found(1, 1, us(20), us(2)), Some(Way::Copy));
        assert_eq!(found(2, 1, us(20), us(2)), Some(Way::Fragments));
        // The sender has to copy them, too.
        assert_eq!(found(2, 1, us(10), us(5)), Some(Way::Copy));
        // Four switches take as long as a copy.
        assert_eq!(found(8, 4, us(20), us(1) / 4), Some(Way::Copy));
        assert_eq!(found(8, 4, us(3), us(1) / 4), Some(Way::Fragments));
        // A sender that stays away for long keeps us waiting, however many share the core.
        assert_eq!(found(2, 1, us(900), us(1)), Some(Way::Copy));
        assert_eq!(found(30, 1, us(900), us(1)), Some(Way::Copy));
    }

    #[test]
    fn putting_a_fragment_is_work_only_where_cores_are_shared() {
        for sharing in [1, 2] {
            let pace = Rc::new(ProtocolChooser::where_cores_have(sharing));
            pace.turn.set(Some(Way::Fragments));
            let transfer = TimedTransfer::begin(&pace, 1 << 16);
            transfer.put(|| std::thread::sleep(Duration::from_millis(1)));
            let period = pace.periods[Way::Fragments as usize].get();
            let work = period.expect("one under way").work;
            match sharing {
                1 => assert_eq!(work, Duration::ZERO),
                _ => assert!(work >= Duration::from_millis(2), "{work:?}"),
            }
            transfer.ends();
            assert!(pace.is_idle());
        }
    }

    #[test]
    fn what_was_found_for_shorter_data_is_believed_until_it_is_tried() {
        let (pace, mut now) = (ProtocolChooser::default(), Instant::now());
        let send = |now: &mut Instant, bytes: u64, costs: [u64; 2]| {
            let way = pace.begin(bytes, *now);
            *now += Duration::from_nanos(costs[way as usize]);
            pace.end(way, Some(bytes), || *now);
            way
        };
        for _ in 0..7 {
            send(&mut now, 1 << 16, [6_000, 3_000]);
        }
        // The longer ones know no better yet, and the longest nothing: between them lies an order of which nothing is known.
        let mut first = |bytes| {
            (0..8)
                .map(|_| send(&mut now, bytes, [6_000, 9_000]))
                .collect()
        };
        let (longer, longest): (Vec<_>, Vec<_>) = (first(1 << 17), first(1 << 20));
        assert!(longer.iter().all(|way| *way == Way::Fragments));
        assert_eq!(longest[..3], [Way::Copy; 3]);
        // They find out what is true of them.
        let found = |_| send(&mut now, 1 << 17, [6_000, 9_000]);
        let ways: Vec<_> = (0..200).map(found).collect();
        assert!(ways.contains(&Way::Copy));
        assert_eq!(pace.better(1 << 17), Some(Way::Copy));
    }

    #[test]
    fn a_way_that_has_become_worse_is_left_and_one_bad_sample_changes_nothing() {
        let (pace, mut now) = (ProtocolChooser::default(), Instant::now());
        let calm = |way| match way {
            Way::Copy => 8_000,
            Way::Fragments => 4_000,
        };
        run(&pace, &mut now, 20, calm);
        run(&pace, &mut now, 1, |_| 50_000_000);
        // Of those, one tries the other way anew.
        assert_eq!(run(&pace, &mut now, 20, calm), 19);
        // The sender computes, and its fragments have to wait for it.
        let absent = |way| match way {
            Way::Copy => 8_000,
            Way::Fragments => 900_000,
        };
        let fragmented = run(&pace, &mut now, 100, absent);
        assert!(fragmented < 20, "{fragmented} messages waited");
        let again = run(&pace, &mut now, 3 * 256, calm);
        assert!(
            again > 400,
            "only {again} messages used what was better again"
        );
    }

    /// Sends windows of 64 messages and answers of each how many were copied.
    fn windows(
        pace: &ProtocolChooser,
        now: &mut Instant,
        windows: u32,
        cost: impl Fn(Way) -> u64,
    ) -> Vec<usize> {
        let window = |_| {
            let ways: Vec<Way> = (0..64).map(|_| pace.begin(1 << 20, *now)).collect();
            for &way in &ways {
                *now += Duration::from_nanos(cost(way));
                pace.end(way, Some(1 << 20), || *now);
            }
            ways.iter().filter(|way| **way == Way::Copy).count()
        };
        (0..windows).map(window).collect()
    }

    #[test]
    fn a_window_goes_one_way_but_only_so_many_copies_are_tried_in_one() {
        let (pace, mut now) = (ProtocolChooser::default(), Instant::now());
        let copied = windows(&pace, &mut now, 110, |way| match way {
            Way::Copy => 70_000,
            Way::Fragments => 20_000,
        });
        let mut expected = vec![0; 110];
        for window in [0, 1, 2, 82] {
            expected[window] = ENOUGH as usize;
        }
        assert_eq!(copied, expected);
    }

    #[test]
    fn where_copies_are_better_windows_are_copied_whole() {
        let (pace, mut now) = (ProtocolChooser::default(), Instant::now());
        let copied = windows(&pace, &mut now, 20, |way| match way {
            Way::Copy => 20_000,
            Way::Fragments => 70_000,
        });
        assert_eq!(copied, [&[16; 3][..], &[64; 17]].concat());
    }

    #[test]
    fn a_stream_without_a_gap_is_a_sample_after_a_while_and_may_change_its_way() {
        let (pace, mut now) = (ProtocolChooser::default(), Instant::now());
        let mut open = std::collections::VecDeque::new();
        let mut copied = 0;
        for _ in 0..20_000 {
            open.push_back(pace.begin(1 << 20, now));
            if open.len() < 8 {
                continue;
            }
            let way = open.pop_front().expect("one under way");
            copied += u32::from(way == Way::Copy);
            now += Duration::from_micros(if way == Way::Copy { 90 } else { 30 });
            pace.end(way, Some(1 << 20), || now);
        }
        assert_eq!(pace.better(1 << 20), Some(Way::Fragments));
        assert!((16..2_000).contains(&copied), "{copied} of 20,000 copied");
        for way in open {
            pace.end(way, Some(1 << 20), || now);
        }
        assert!(pace.is_idle());
    }

    #[test]
    fn what_was_given_up_and_what_mixes_sizes_says_nothing() {
        let (pace, now) = (ProtocolChooser::default(), Instant::now());
        for _ in 0..100 {
            assert_eq!(pace.begin(1 << 16, now), Way::Copy);
            pace.end(Way::Copy, None, || now);
            pace.begin(1 << 16, now);
            assert_eq!(pace.begin(1 << 20, now), Way::Copy);
            pace.end(Way::Copy, Some(1 << 16), || now);
            pace.end(Way::Copy, Some(1 << 20), || now);
        }
        assert!(pace.is_idle());
    }

    #[test]
    fn what_had_to_wait_for_other_data_says_nothing() {
        let (pace, mut now) = (ProtocolChooser::default(), Instant::now());
        for _ in 0..100 {
            assert_eq!(pace.begin(1 << 16, now), Way::Copy);
            pace.disturb();
            now += Duration::from_micros(1);
            pace.end(Way::Copy, Some(1 << 16), || now);
        }
        // What came before it began disturbs nothing.
        pace.disturb();
        assert_eq!(run(&pace, &mut now, 6, |_| 1_000), 3);
    }

    #[test]
    fn a_transfer_is_closed_whether_it_ends_or_is_given_up() {
        let pace = Rc::new(ProtocolChooser::default());
        let samples = || pace.known[2].get().tries(Way::Copy);
        drop(TimedTransfer::begin(&pace, 1 << 16));
        assert!(pace.is_idle());
        assert_eq!(samples(), 0);
        TimedTransfer::begin(&pace, 1 << 16).ends();
        assert!(pace.is_idle());
        assert_eq!(samples(), 1);
    }
}
