//! Choice between single copy (by the kernel) and fragments (copied by both programs) for long messages from one peer, by measurements.
//!
//! Neither protocol is faster on all machines.
//! In a single copy, the kernel looks up every page. In fragments, the programs copy twice, which
//! is nearly free if the two cores share a cache and very expensive otherwise.
//! Fragments also need a sender that calls MPI while the message is transferred.
//! So both protocols are measured, for each peer and each size class: each protocol is tried three
//! times, then the faster one is used.
//! The slower protocol is tried again at intervals, because processes migrate between cores and programs change their behaviour between messages.
//!
//! A sample is the time in which at least one matched message is being transferred, divided by the bytes received in this time.
//! Messages of one protocol that overlap in time form one sample, so a window of messages and a single message are measured in the same way.
//! A window uses one protocol, with one exception: if single copy is only being tried again,
//! the rest of the window uses fragments after enough copies for a sample have begun.
//! (The reverse is not possible: fragments are requested for all messages immediately, and would wait for the copies that follow them.)
//!
//! On an oversubscribed node, most of the elapsed time is useful work of other ranks on the core.
//! There the cost of fragments is the work of both sides: twice the receiver's copying time, plus one
//! context switch for each time that the receiver had to wait for more data.
//! The cost is at least this rank's share of the elapsed time.
//! Without this minimum, fragments would seem cheap if the sender computes for a long time between its messages,
//! although they delay a receiver that could copy the data immediately.
//!
//! The result for one size class is also used for the next larger class until fragments have
//! been tried in the larger class:
//! three windows with the slower protocol would take a fifth of the run time of a short program.
//! Without such a result, long messages use single copy until many messages of the class have been received ([`trial::first_trial`]).

use crate::trial::{self, Known, ORDERS, first_trial, order_of};
use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

pub use crate::trial::Way;

/// The slower protocol is tried so rarely that these trials increase the total time by about 1/PRICE.
/// Without this limit trials would be expensive: one sample can consist of 64 messages,
/// and the slower protocol can take four times as long as the faster one.
const PRICE: f32 = 32.0;
/// The maximum duration of a sample; a longer one is ended although messages are still active.
const LONGEST: Duration = Duration::from_millis(20);
/// The number of single copies in one period that suffices for a sample.
const ENOUGH: u32 = 16;

/// Length in bytes from which fragments are first tried late.
/// The three trials with shorter messages take at most a quarter of a millisecond.
const LATE_FROM: u64 = 128 << 10;

/// On an oversubscribed node, a receiver that has waited longer than `AWAY` for data is assumed to have yielded its core;
/// the context switch costs `SWITCH`.
const AWAY: Duration = Duration::from_micros(4);
const SWITCH: Duration = Duration::from_nanos(1600);

/// The measurements of both protocols for one peer.
#[derive(Default)]
pub struct ProtocolChooser {
    /// The number of ranks per core of the node.
    sharing: u32,
    known: [Cell<Known>; ORDERS],
    /// The number of messages of each size class that have begun, saturating.
    begun: [Cell<u32>; ORDERS],
    /// The current sample of each protocol; `None` if the protocol has no active message.
    periods: [Cell<Option<Period>>; 2],
    /// The protocol of messages that begin during the current sample.
    turn: Cell<Option<Way>>,
}

/// A period with at least one active message of one protocol.
#[derive(Clone, Copy)]
struct Period {
    order: usize,
    began: Instant,
    bytes: u64,
    /// The work of both sides on the fragments, and the time at which the last fragment was copied.
    work: Duration,
    worked: Instant,
    /// The number of active messages, and the number of messages that began in the period.
    open: u32,
    begun: u32,
    /// True if the sample is valid: all its messages are of one size class, none was abandoned,
    /// and no eager data arrived in the period.
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
    /// Creates a chooser without measurements, for a node with `ranks` ranks per core.
    pub fn where_cores_have(ranks: u32) -> ProtocolChooser {
        ProtocolChooser {
            sharing: ranks,
            ..ProtocolChooser::default()
        }
    }

    fn begin(&self, bytes: u64, now: Instant) -> Way {
        let order = order_of(bytes);
        let begun = &self.begun[order];
        begun.set(begun.get().saturating_add(1));
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

    /// Returns true if single copies are only tried again, and enough copies for a sample have begun.
    fn copies_suffice(&self) -> bool {
        self.periods[Way::Copy as usize]
            .get()
            .is_some_and(|copies| {
                let known = self.known[copies.order].get();
                copies.begun >= ENOUGH
                    && known.only_tries(Way::Copy)
                    && !self.is_early(copies.order, &known)
            })
    }

    /// Invalidates the current samples, because the measured messages had to wait for eager data.
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

    /// Adds a fragment that was copied from `began` to `now` to the work of the period.
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
                // The sender's copy of the fragment takes as long as the receiver's.
                work: period.work + 2 * copying + switch,
                worked: now,
                ..period
            }
        }));
    }

    /// Ends the measurement of a message; `bytes` is `None` if the message was abandoned.
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
                // At least the share of one rank, if the 2 x `sharing` ranks on the cores of the receiver and the sender divide the elapsed time equally.
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
                // If the protocol changes, the new period does not count:
                // the remaining messages of the old protocol overlap in time with those of the new one.
                period.counts = next == way;
            }
        }
        self.periods[way as usize].set((!over).then_some(period));
        if self.periods.iter().all(|period| period.get().is_none()) {
            self.turn.set(None);
        }
    }

    /// Returns the faster protocol for messages of `bytes` bytes, or `None` if too few samples exist.
    pub(super) fn better(&self, bytes: u64) -> Option<Way> {
        self.known[order_of(bytes)].get().better()
    }

    /// Returns true if no message is active.
    #[cfg(test)]
    fn is_idle(&self) -> bool {
        self.turn.get().is_none() && self.periods.iter().all(|period| period.get().is_none())
    }

    /// Returns true if messages of this size class have been measured.
    #[cfg(feature = "testing")]
    pub(super) fn knows(&self, bytes: u64) -> bool {
        let known = self.known[order_of(bytes)].get();
        known.tries(Way::Copy) + known.tries(Way::Fragments) > 0
    }

    fn next(&self, order: usize) -> Way {
        let mut known = self.known[order].get();
        if known.has_no_sample(Way::Fragments)
            && let Some(shorter) = order.checked_sub(1)
        {
            let believed = self.known[shorter].get().believed();
            if known.is_new() || believed.better().is_some() {
                known = believed;
            }
        }
        if self.is_early(order, &known) {
            return Way::Copy;
        }
        let way = known.next(PRICE, PRICE);
        self.known[order].set(known);
        way
    }

    /// Returns true if it is too early for the first trial of fragments.
    fn is_early(&self, order: usize, known: &Known) -> bool {
        known.missing(Way::Fragments) > 0
            && self.begun[order].get() <= first_trial(order, LATE_FROM)
    }
}

/// The time measurement of an active message; dropping it before `ends` marks the message as abandoned.
pub struct TimedTransfer {
    chooser: Rc<ProtocolChooser>,
    bytes: u64,
    way: Way,
}

impl TimedTransfer {
    /// Begins the measurement of a message of `bytes` bytes from the chooser's peer, and chooses the protocol.
    pub fn begin(chooser: &Rc<ProtocolChooser>, bytes: u64) -> TimedTransfer {
        TimedTransfer {
            way: chooser.begin(bytes, trial::now()),
            chooser: chooser.clone(),
            bytes,
        }
    }

    /// Returns the protocol of the message.
    pub fn way(&self) -> Way {
        self.way
    }

    /// Copies a fragment by calling `put`. On an oversubscribed node the duration is counted as work.
    #[inline]
    pub fn put(&self, put: impl FnOnce()) {
        if !self.chooser.is_oversubscribed() {
            return put();
        }
        let began = trial::now();
        put();
        self.chooser.copied(began, trial::now());
    }

    /// Ends the measurement of a message that has arrived completely. Returns the message's length in bytes.
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
        // `ends` has set `bytes` to zero; a measured message is never empty.
        if self.bytes > 0 {
            self.chooser.end(self.way, None, trial::now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    /// Transfers `messages` messages one after another. Returns the number of messages sent in fragments.
    fn run(
        chooser: &ProtocolChooser,
        now: &mut Instant,
        messages: u32,
        cost: impl Fn(Way) -> u64,
    ) -> u32 {
        let mut fragmented = 0;
        for _ in 0..messages {
            let way = chooser.begin(1 << 16, *now);
            fragmented += u32::from(way == Way::Fragments);
            *now += Duration::from_nanos(cost(way));
            chooser.end(way, Some(1 << 16), || *now);
        }
        fragmented
    }

    #[test]
    fn the_better_way_is_taken_and_the_other_tried_now_and_then() {
        let mut now = Instant::now();
        for (copy, fragments) in [(8_000, 3_000), (3_000, 8_000)] {
            let chooser = ProtocolChooser::default();
            let cost = |way| match way {
                Way::Copy => copy,
                Way::Fragments => fragments,
            };
            assert_eq!(run(&chooser, &mut now, 6, cost), 3);
            let share = |fragmented: u32, messages: u32| match fragments < copy {
                true => messages - fragmented,
                false => fragmented,
            };
            // The slower protocol is tried three times while the tries cost less than 1/PRICE of the time,
            // then after 64 and 128 messages, and finally for one message in 256.
            assert_eq!(share(run(&chooser, &mut now, 500, cost), 500), 5);
            let often = run(&chooser, &mut now, 2_560, cost);
            assert_eq!(share(often, 2_560), 10);
        }
    }

    /// Returns the protocol that the chooser considers faster. A single copy takes 8 us.
    /// A message has `pieces` fragments. Each arrives `after` the previous one was copied,
    /// and copying it takes `each`.
    fn found(sharing: u32, pieces: u32, after: Duration, each: Duration) -> Option<Way> {
        let (chooser, mut now) = (ProtocolChooser::where_cores_have(sharing), Instant::now());
        for _ in 0..7 {
            let way = chooser.begin(1 << 16, now);
            match way {
                Way::Copy => now += Duration::from_micros(8),
                Way::Fragments => {
                    for _ in 0..pieces {
                        now += after;
                        chooser.copied(now, now + each);
                        now += each;
                    }
                }
            }
            chooser.end(way, Some(1 << 16), || now);
        }
        chooser.better(1 << 16)
    }

    #[test]
    fn where_cores_are_shared_fragments_cost_what_both_work_on_them() {
        let us = Duration::from_micros;
        // With two ranks per core, another rank uses the 20 us in which this rank waits.
        assert_eq!(found(1, 1, us(20), us(2)), Some(Way::Copy));
        assert_eq!(found(2, 1, us(20), us(2)), Some(Way::Fragments));
        // The sender copies the fragment, too, so the work is 10 us plus a context switch.
        assert_eq!(found(2, 1, us(10), us(5)), Some(Way::Copy));
        // Four context switches take almost as long as a single copy.
        assert_eq!(found(8, 4, us(20), us(1) / 4), Some(Way::Copy));
        assert_eq!(found(8, 4, us(3), us(1) / 4), Some(Way::Fragments));
        // A sender that polls too late delays the receiver, whether the node is oversubscribed or not.
        assert_eq!(found(2, 1, us(900), us(1)), Some(Way::Copy));
        assert_eq!(found(30, 1, us(900), us(1)), Some(Way::Copy));
    }

    #[test]
    fn putting_a_fragment_is_work_only_where_cores_are_shared() {
        for sharing in [1, 2] {
            let chooser = Rc::new(ProtocolChooser::where_cores_have(sharing));
            chooser.turn.set(Some(Way::Fragments));
            let transfer = TimedTransfer::begin(&chooser, 1 << 16);
            transfer.put(|| std::thread::sleep(Duration::from_millis(1)));
            let period = chooser.periods[Way::Fragments as usize].get();
            let work = period.expect("one in progress").work;
            match sharing {
                1 => assert_eq!(work, Duration::ZERO),
                _ => assert!(work >= Duration::from_millis(2), "{work:?}"),
            }
            transfer.ends();
            assert!(chooser.is_idle());
        }
    }

    #[test]
    fn what_was_found_for_shorter_data_is_believed_until_it_is_tried() {
        let (chooser, mut now) = (ProtocolChooser::default(), Instant::now());
        let send = |now: &mut Instant, bytes: u64, costs: [u64; 2]| {
            let way = chooser.begin(bytes, *now);
            *now += Duration::from_nanos(costs[way as usize]);
            chooser.end(way, Some(bytes), || *now);
            way
        };
        for _ in 0..7 {
            send(&mut now, 1 << 16, [6_000, 3_000]);
        }
        // The class of 128 KiB uses the result of the class of 64 KiB. The class of 1 MiB does not: the
        // next smaller class has no samples.
        let mut first = |bytes| {
            (0..8)
                .map(|_| send(&mut now, bytes, [6_000, 9_000]))
                .collect()
        };
        let (longer, longest): (Vec<_>, Vec<_>) = (first(1 << 17), first(1 << 20));
        assert!(longer.iter().all(|way| *way == Way::Fragments));
        assert_eq!(longest[..3], [Way::Copy; 3]);
        // Now the class of 128 KiB has its own samples.
        let found = |_| send(&mut now, 1 << 17, [6_000, 9_000]);
        let ways: Vec<_> = (0..200).map(found).collect();
        assert!(ways.contains(&Way::Copy));
        assert_eq!(chooser.better(1 << 17), Some(Way::Copy));
    }

    #[test]
    fn a_way_that_has_become_worse_is_left_and_one_bad_sample_changes_nothing() {
        let (chooser, mut now) = (ProtocolChooser::default(), Instant::now());
        let calm = |way| match way {
            Way::Copy => 8_000,
            Way::Fragments => 4_000,
        };
        run(&chooser, &mut now, 20, calm);
        run(&chooser, &mut now, 1, |_| 50_000_000);
        // One of these 20 messages tries the other protocol again.
        assert_eq!(run(&chooser, &mut now, 20, calm), 19);
        // The sender computes and polls rarely, so its fragments arrive late.
        let absent = |way| match way {
            Way::Copy => 8_000,
            Way::Fragments => 900_000,
        };
        let fragmented = run(&chooser, &mut now, 100, absent);
        assert!(fragmented < 20, "{fragmented} messages waited");
        let again = run(&chooser, &mut now, 3 * 256, calm);
        assert!(
            again > 400,
            "only {again} messages used what was better again"
        );
    }

    /// Transfers windows of 64 messages. Returns the number of single copies in each window.
    fn windows(
        chooser: &ProtocolChooser,
        now: &mut Instant,
        windows: u32,
        cost: impl Fn(Way) -> u64,
    ) -> Vec<usize> {
        let window = |_| {
            let ways: Vec<Way> = (0..64).map(|_| chooser.begin(1 << 20, *now)).collect();
            for &way in &ways {
                *now += Duration::from_nanos(cost(way));
                chooser.end(way, Some(1 << 20), || *now);
            }
            ways.iter().filter(|way| **way == Way::Copy).count()
        };
        (0..windows).map(window).collect()
    }

    #[test]
    fn a_window_goes_one_way_but_only_so_many_copies_are_tried_in_one() {
        let (chooser, mut now) = (ProtocolChooser::default(), Instant::now());
        let copied = windows(&chooser, &mut now, 110, |way| match way {
            Way::Copy => 70_000,
            Way::Fragments => 20_000,
        });
        let mut expected = vec![0; 110];
        // The first messages of the class are all copied.
        expected[..2].fill(64);
        for window in [2, 84] {
            expected[window] = ENOUGH as usize;
        }
        assert_eq!(copied, expected);
    }

    #[test]
    fn a_class_with_single_copies_only_believes_the_shorter_class() {
        let (chooser, mut now) = (ProtocolChooser::default(), Instant::now());
        let mut send = |bytes: u64| {
            let way = chooser.begin(bytes, now);
            now += Duration::from_nanos([6_000, 3_000][way as usize]);
            chooser.end(way, Some(bytes), || now);
            way
        };
        assert_eq!(send(1 << 17), Way::Copy);
        for _ in 0..7 {
            send(1 << 16);
        }
        assert_eq!(send(1 << 17), Way::Fragments);
    }

    #[test]
    fn long_messages_try_fragments_late() {
        for (bytes, first) in [(1 << 16, 3), (1 << 17, 128), (4 << 20, 128)] {
            let (chooser, mut now) = (ProtocolChooser::default(), Instant::now());
            let ways: Vec<Way> = (0..140)
                .map(|_| {
                    let way = chooser.begin(bytes, now);
                    now += Duration::from_micros(9);
                    chooser.end(way, Some(bytes), || now);
                    way
                })
                .collect();
            let fragments = ways.iter().position(|way| *way == Way::Fragments);
            assert_eq!(fragments, Some(first), "{bytes} bytes");
        }
    }

    #[test]
    fn where_copies_are_better_windows_are_copied_whole() {
        let (chooser, mut now) = (ProtocolChooser::default(), Instant::now());
        let copied = windows(&chooser, &mut now, 20, |way| match way {
            Way::Copy => 20_000,
            Way::Fragments => 70_000,
        });
        // The third window has the first fragments, and the next two complete the trial.
        assert_eq!(copied, [&[64, 64, 16, 0, 0][..], &[64; 15]].concat());
    }

    #[test]
    fn a_stream_without_a_gap_is_a_sample_after_a_while_and_may_change_its_way() {
        let (chooser, mut now) = (ProtocolChooser::default(), Instant::now());
        let mut open = std::collections::VecDeque::new();
        let mut copied = 0;
        for _ in 0..20_000 {
            open.push_back(chooser.begin(1 << 20, now));
            if open.len() < 8 {
                continue;
            }
            let way = open.pop_front().expect("one in progress");
            copied += u32::from(way == Way::Copy);
            now += Duration::from_micros(if way == Way::Copy { 90 } else { 30 });
            chooser.end(way, Some(1 << 20), || now);
        }
        assert_eq!(chooser.better(1 << 20), Some(Way::Fragments));
        assert!((16..2_000).contains(&copied), "{copied} of 20,000 copied");
        for way in open {
            chooser.end(way, Some(1 << 20), || now);
        }
        assert!(chooser.is_idle());
    }

    #[test]
    fn what_was_given_up_and_what_mixes_sizes_says_nothing() {
        let (chooser, now) = (ProtocolChooser::default(), Instant::now());
        for _ in 0..100 {
            assert_eq!(chooser.begin(1 << 16, now), Way::Copy);
            chooser.end(Way::Copy, None, || now);
            chooser.begin(1 << 16, now);
            assert_eq!(chooser.begin(1 << 20, now), Way::Copy);
            chooser.end(Way::Copy, Some(1 << 16), || now);
            chooser.end(Way::Copy, Some(1 << 20), || now);
        }
        assert!(chooser.is_idle());
    }

    #[test]
    fn a_transfer_that_waited_for_other_data_is_not_measured() {
        let (chooser, mut now) = (ProtocolChooser::default(), Instant::now());
        for _ in 0..100 {
            assert_eq!(chooser.begin(1 << 16, now), Way::Copy);
            chooser.disturb();
            now += Duration::from_micros(1);
            chooser.end(Way::Copy, Some(1 << 16), || now);
        }
        // Data that arrived before a sample began do not invalidate the sample.
        chooser.disturb();
        assert_eq!(run(&chooser, &mut now, 6, |_| 1_000), 3);
    }

    #[test]
    fn a_transfer_is_closed_whether_it_ends_or_is_given_up() {
        let chooser = Rc::new(ProtocolChooser::default());
        let samples = || chooser.known[2].get().tries(Way::Copy);
        drop(TimedTransfer::begin(&chooser, 1 << 16));
        assert!(chooser.is_idle());
        assert_eq!(samples(), 0);
        TimedTransfer::begin(&chooser, 1 << 16).ends();
        assert!(chooser.is_idle());
        assert_eq!(samples(), 1);
    }
}
