//! The long waits of a rank's threads, while its messages have lanes (`threads_lanes`).
//!
//! The state page describes one wait, that of the latest call.
//! With lanes several threads of a rank wait at the same time, each under the lock of its lane.
//! So a thread that waits for long takes a slot here and describes its wait in it,
//! and frees the slot when the wait ends. A thread that finds no free slot is not described.
//!
//! Slots and head are also evidence that only other ranks can end the waits, as [`Quiet`] is for one thread:
//! * each slot has a time after which a complete poll of the thread's lane and of its condition began and found nothing;
//! * the head has a time after which a complete poll of every lane began and found nothing;
//! * the head counts the waits that began or ended, and the polls that found something.
//!
//! Protocol: a thread takes a slot by compare-and-swap of its ID, stores only to its own slot, and frees it by a store of 0.
//! All threads store to the head; its counters and times only grow.
//! A launcher reads with relaxed loads, except for the times of polls, which publish all earlier stores.

use super::call::{About, CallWords};
use super::quiet::Quiet;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};

/// The maximum number of threads of a rank whose waits are described at the same time.
pub const THREADS: usize = 24;

/// The evidence that concerns all threads of the rank.
#[repr(C, align(64))]
#[derive(Debug, Default)]
struct HeadLine {
    /// The number of slots that have been taken or freed.
    changes: AtomicU64,
    /// The number of polls of waiting threads that have found something, in all lanes.
    events: AtomicU64,
    /// Time of the latest change or event, in CLOCK_MONOTONIC nanoseconds.
    since_ns: AtomicU64,
    /// A complete poll of every lane began after this time and found nothing.
    checked_ns: AtomicU64,
    /// As [`Quiet::sent`] and [`Quiet::received`], of lane 0; other lanes have only shared memory.
    sent: AtomicU64,
    received: AtomicU64,
    /// As [`Quiet::is_open`], of lane 0.
    is_open: AtomicU32,
}

/// The wait of one thread.
#[repr(C, align(64))]
#[derive(Debug, Default)]
struct Slot {
    /// Time at which the slot was taken.
    since_ns: AtomicU64,
    /// A complete poll of the thread's lane began after this time; then the wait's condition was false.
    checked_ns: AtomicU64,
    words: CallWords,
    /// The kernel's ID of the thread; 0 while the slot is free.
    thread: AtomicU32,
    lane: AtomicU32,
}

/// The long waits of a rank's threads.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub struct ThreadWaits {
    head: HeadLine,
    slots: [Slot; THREADS],
}

/// A copy of one thread's wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadWait {
    /// The kernel's ID of the thread.
    pub thread: u32,
    /// The lane in whose engine the thread waits. The state page describes the wait in lane 0.
    pub lane: u32,
    /// The MPI call's number in the function table.
    pub call: u16,
    /// The description of the wait; in lane 0 it has no kind.
    pub about: About,
    /// Time at which the wait was first described, in CLOCK_MONOTONIC nanoseconds.
    pub since_ns: u64,
}

/// A copy of all waits of a rank's threads, made by [`ThreadWaits::snapshot`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Threads {
    /// The described waits, the longest first.
    pub waits: Vec<ThreadWait>,
    /// The number of polls of waiting threads that have found something.
    pub events: u64,
    /// The evidence that only other ranks can end these waits; the thread of [`Quiet`] is not used.
    pub quiet: Quiet,
}

impl ThreadWaits {
    /// Describes a new wait of the thread with this ID. Returns its slot, or `None` if all slots are taken.
    pub fn begin(
        &self,
        thread: u32,
        (lane, call): (u32, u16),
        about: &About,
        now_ns: u64,
    ) -> Option<usize> {
        let take = |slot: &Slot| {
            let taken = (slot.thread).compare_exchange(0, thread, AcqRel, Relaxed);
            taken.is_ok()
        };
        let at = self.slots.iter().position(take)?;
        let slot = &self.slots[at];
        slot.checked_ns.store(0, Relaxed);
        slot.since_ns.store(now_ns, Relaxed);
        slot.lane.store(lane, Relaxed);
        slot.words.set_call(call);
        slot.words.set_about(about);
        self.has_changed(now_ns);
        Some(at)
    }

    /// Records that a complete poll of a wait, begun after `checked_ns`, has found nothing.
    pub fn polled(&self, slot: usize, checked_ns: u64) {
        if let Some(slot) = self.slots.get(slot) {
            slot.checked_ns.store(checked_ns, Release);
        }
    }

    /// Frees the slot of a wait that has ended.
    pub fn end(&self, slot: usize, now_ns: u64) {
        if let Some(slot) = self.slots.get(slot) {
            self.has_changed(now_ns);
            slot.thread.store(0, Release);
        }
    }

    fn has_changed(&self, now_ns: u64) {
        self.head.since_ns.fetch_max(now_ns, Relaxed);
        self.head.changes.fetch_add(1, Release);
    }

    /// Records the number of polls so far that have found something in any lane.
    pub fn found(&self, events: u64, now_ns: u64) {
        if self.head.events.fetch_max(events, Relaxed) < events {
            self.head.since_ns.fetch_max(now_ns, Relaxed);
        }
    }

    /// Records the messages of lane 0's transports, and whether an event from outside of the job could end a wait.
    /// The caller holds the lock of lane 0.
    pub fn outside(&self, (sent, received): (u64, u64), is_open: bool) {
        self.head.sent.store(sent, Relaxed);
        self.head.received.store(received, Relaxed);
        self.head.is_open.store(is_open.into(), Relaxed);
    }

    /// Records that a complete poll of every lane, begun after `checked_ns`, has found nothing.
    pub fn polled_all(&self, checked_ns: u64) {
        self.head.checked_ns.fetch_max(checked_ns, Release);
    }

    /// Returns a copy of the waits; `None` if no wait is described.
    pub fn snapshot(&self) -> Option<Threads> {
        let mut checked_ns = self.head.checked_ns.load(Acquire);
        let mut waits = Vec::new();
        for slot in &self.slots {
            let thread = slot.thread.load(Acquire);
            if thread == 0 {
                continue;
            }
            checked_ns = checked_ns.min(slot.checked_ns.load(Acquire));
            waits.push(ThreadWait {
                thread,
                lane: slot.lane.load(Relaxed),
                call: slot.words.call(),
                about: slot.words.about(),
                since_ns: slot.since_ns.load(Relaxed),
            });
        }
        if waits.is_empty() {
            return None;
        }
        waits.sort_by_key(|wait| (wait.since_ns, wait.thread));
        let head = &self.head;
        Some(Threads {
            waits,
            events: head.events.load(Relaxed),
            quiet: Quiet {
                waits: head.changes.load(Acquire),
                since_ns: head.since_ns.load(Relaxed),
                checked_ns,
                sent: head.sent.load(Relaxed),
                received: head.received.load(Relaxed),
                thread: 0,
                is_open: head.is_open.load(Relaxed) != 0,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::call::Waits;
    use super::*;

    fn about(peer: i32) -> About {
        About {
            waits: Waits::Recv,
            peer,
            ..About::default()
        }
    }

    #[test]
    fn each_thread_has_a_slot_until_its_wait_ends() {
        let page = ThreadWaits::default();
        assert_eq!(page.snapshot(), None);
        let first = page.begin(71, (2, 5), &about(3), 20).unwrap();
        let second = page.begin(72, (1, 6), &about(4), 10).unwrap();
        assert_ne!(first, second);
        let seen = page.snapshot().unwrap();
        let threads: Vec<_> = (seen.waits.iter())
            .map(|wait| (wait.thread, wait.lane, wait.call, wait.about.peer))
            .collect();
        assert_eq!(threads, [(72, 1, 6, 4), (71, 2, 5, 3)]);
        assert_eq!((seen.quiet.waits, seen.quiet.since_ns), (2, 20));
        page.end(second, 30);
        let left = page.snapshot().unwrap();
        assert_eq!((left.waits.len(), left.quiet.waits), (1, 3));
        page.end(first, 40);
        assert_eq!(page.snapshot(), None);
    }

    #[test]
    fn the_oldest_poll_of_all_threads_and_lanes_counts() {
        let page = ThreadWaits::default();
        let first = page.begin(71, (2, 5), &about(3), 1).unwrap();
        let second = page.begin(72, (1, 6), &about(4), 1).unwrap();
        let checked = || page.snapshot().unwrap().quiet.checked_ns;
        page.polled(first, 50);
        page.polled_all(60);
        assert_eq!(checked(), 0, "the second thread has not polled");
        page.polled(second, 40);
        assert_eq!(checked(), 40);
        page.polled(second, 90);
        page.polled(first, 90);
        assert_eq!(checked(), 60);
        page.polled_all(55);
        assert_eq!(checked(), 60);
    }

    #[test]
    fn an_event_moves_the_time_since_which_nothing_has_happened() {
        let page = ThreadWaits::default();
        page.begin(71, (0, 5), &about(3), 5).unwrap();
        page.found(3, 70);
        page.found(3, 80);
        let seen = page.snapshot().unwrap();
        assert_eq!((seen.events, seen.quiet.since_ns), (3, 70));
    }

    #[test]
    fn a_thread_that_finds_no_slot_is_not_described() {
        let page = ThreadWaits::default();
        for thread in 1..=THREADS as u32 {
            assert!(page.begin(thread, (1, 1), &about(0), 1).is_some());
        }
        assert_eq!(page.begin(99, (1, 1), &about(0), 1), None);
    }

    #[test]
    fn a_slot_is_a_cache_line() {
        assert_eq!(size_of::<ThreadWaits>(), 64 * (THREADS + 1));
    }
}
