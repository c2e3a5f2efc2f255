//! Long waits of this process's threads, while its messages have lanes: what each thread waits for,
//! and evidence that only other ranks can end the waits ([`ThreadWaits`]).
//!
//! The launcher reads both for the hang report and for the proof that a job cannot continue.
//! A short wait costs one counter; a wait is described after [`SHORT`] polls without a result.
//! A thread that waits in a lane has a [`Wait`].
//! A thread that waits in lane 0 is described by the hooks of its lock ([`polled_in_base`]),
//! and the state page describes the event for which it waits.
//!
//! Evidence: a thread records the time before its latest complete poll without a result.
//! The first such thread after [`PERIOD_NS`] also polls each lane in which no thread waits ([`Others::poll_idle`]).
//! The counts of polls that have found something belong to a lane and are written under its lock.

use crate::functions::id_of;
use mpi_base::clock::now_ns;
use mpi_base::cpu::this_thread;
use mpi_base::state::{About, ThreadWaits};
use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{
    AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

/// The number of polls of a wait without a result before it is described.
const SHORT: u32 = 16;

/// Time after which a lane that no thread waits in is polled again for evidence, in ns.
/// Such a poll may revoke the reservation of the lane's lock.
const PERIOD_NS: u64 = 40_000_000;

/// Minimum time between two publications of a wait, in ns. The launcher reads them at most once in 100 ms.
const PUBLISHED_NS: u64 = 1_000_000;

/// The number of polls after which a thread that has found no free slot tries again.
const AGAIN: u32 = 64;

/// The maximum number of lanes.
const LANES: usize = 8;

/// The lane number of a wait for requests of several lanes, whose thread is in none of them.
pub const SEVERAL: usize = LANES;

/// Polls of one lane. Lanes do not share cache lines.
#[repr(align(128))]
struct Polls {
    /// The number of polls of waiting threads that have found something. Written under the lane's lock.
    events: AtomicU64,
    /// The time before the lane's latest complete poll without a result.
    checked_ns: AtomicU64,
}

static POLLS: [Polls; LANES] = [const {
    Polls {
        events: AtomicU64::new(0),
        checked_ns: AtomicU64::new(0),
    }
}; LANES];

/// The functions of higher modules that gather evidence.
#[derive(Clone, Copy)]
pub struct Others {
    /// Polls each lane that no thread has polled recently ([`is_polled`]) and whose lock is free.
    pub poll_idle: fn(),
    /// Records the messages of lane 0's transports and whether another job could end a wait.
    /// The caller holds the lock of lane 0.
    pub record_outside: fn(),
}

static OTHERS: OnceLock<(&'static ThreadWaits, Others)> = OnceLock::new();

/// The number of lanes in use; 0 while waits are not described.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// The time at which idle lanes were last polled.
static POLLED_IDLE_NS: AtomicU64 = AtomicU64::new(0);

/// Describes waits from now on, in a process with this number of lanes.
pub fn begin(page: &'static ThreadWaits, lanes: usize, others: Others) {
    let _ = OTHERS.set((page, others));
    COUNT.store(lanes.min(LANES), Relaxed);
}

/// Ends the description of waits, also that of the calling thread.
pub fn end() {
    leave_base();
    COUNT.store(0, Relaxed);
}

fn described() -> Option<(&'static ThreadWaits, Others)> {
    OTHERS.get().copied().filter(|_| COUNT.load(Relaxed) > 0)
}

/// Returns the page on which waits are described, if they are.
pub fn page() -> Option<&'static ThreadWaits> {
    described().map(|(page, _)| page)
}

/// Counts a poll that has found something. The caller holds the lane's lock.
#[inline]
pub fn found(lane: usize) {
    let events = &POLLS[lane % LANES].events;
    events.store(events.load(Relaxed).wrapping_add(1), Relaxed);
}

/// Records that a complete poll of a lane, begun after `checked_ns`, has found nothing. The caller holds the lane's lock.
pub fn found_nothing(lane: usize, checked_ns: u64) {
    POLLS[lane % LANES].checked_ns.store(checked_ns, Release);
}

/// Returns true if a thread has polled a lane recently without a result.
pub fn is_polled(lane: usize, now_ns: u64) -> bool {
    let checked = POLLS[lane % LANES].checked_ns.load(Relaxed);
    now_ns.saturating_sub(checked) < PERIOD_NS
}

/// Returns the number on the state page of a function.
fn number_of(call: &str) -> u16 {
    id_of(call) as u16 + 1
}

/// Publishes the evidence of a described wait: a complete poll that began after `checked_ns` has found nothing.
fn publish(slot: usize, checked_ns: u64, now_ns: u64) {
    let Some((page, others)) = described() else {
        return;
    };
    let last = POLLED_IDLE_NS.load(Relaxed);
    let is_due = now_ns.saturating_sub(last) >= PERIOD_NS;
    if is_due && (POLLED_IDLE_NS.compare_exchange(last, now_ns, Relaxed, Relaxed)).is_ok() {
        (others.poll_idle)();
    }
    let all = &POLLS[..COUNT.load(Relaxed)];
    // The times are read before the counts and stored after them: a reader that sees a time sees all earlier events.
    let times = all.iter().map(|lane| lane.checked_ns.load(Acquire));
    let oldest_ns = times.min().unwrap_or(0);
    let events = all.iter().map(|lane| lane.events.load(Relaxed));
    page.found(events.fold(0, u64::wrapping_add), now_ns);
    page.polled(slot, checked_ns);
    page.polled_all(oldest_ns);
}

/// Takes a slot that describes a wait of a thread. Returns `None` if all slots are taken.
#[cold]
fn take_slot(thread: u32, lane: usize, call: u16, about: &About) -> Option<usize> {
    let (page, _) = described()?;
    page.begin(thread, (lane as u32, call), about, now_ns())
}

/// Returns the kernel's ID of the calling thread.
#[inline]
fn own_id() -> u32 {
    thread_local! {
        static OWN_ID: Cell<u32> = const { Cell::new(0) };
    }
    match OWN_ID.get() {
        0 => {
            OWN_ID.set(this_thread());
            OWN_ID.get()
        }
        id => id,
    }
}

/// Frees a slot. Waits that began before the end of lanes end on the same page.
#[cold]
fn free_slot(slot: usize) {
    if let Some((page, _)) = OTHERS.get() {
        page.end(slot, now_ns());
    }
}

/// A wait of the calling thread in a lane other than 0, or in several lanes.
pub struct Wait {
    lane: usize,
    /// The name of the MPI function.
    call: &'static str,
    /// The kernel's ID of the waiting thread, which makes the first call of [`Wait::goes_on`].
    thread: Cell<u32>,
    polls: Cell<u32>,
    slot: Cell<Option<usize>>,
    /// The times of three calls of [`Wait::goes_on`], at least [`PUBLISHED_NS`] apart, the latest last.
    times_ns: Cell<[u64; 3]>,
}

impl Wait {
    /// Begins a wait in a call of this function. The lane is [`SEVERAL`] if the thread is in no lane while it waits.
    #[inline]
    pub fn new(lane: usize, call: &'static str) -> Wait {
        Wait {
            lane,
            call,
            thread: Cell::new(0),
            polls: Cell::new(0),
            slot: Cell::new(None),
            times_ns: Cell::new([0; 3]),
        }
    }

    /// Called whenever the wait's condition has been false after a poll, or once more before a sleep.
    /// Returns false, so it can be the last part of a condition.
    #[inline]
    pub fn goes_on(&self, about: impl FnOnce() -> About) -> bool {
        let polls = self.polls.get().wrapping_add(1);
        if polls == 1 {
            self.thread.set(own_id());
        } else if self.thread.get() != own_id() {
            // Another thread may check the condition under the lane's lock. It describes nothing and polls nothing.
            return false;
        }
        self.polls.set(polls.max(1));
        if polls % AGAIN == SHORT && self.slot.get().is_none() {
            let call = number_of(self.call);
            let slot = take_slot(self.thread.get(), self.lane, call, &about());
            self.slot.set(slot);
        } else if polls > SHORT {
            self.has_polled();
        }
        false
    }

    /// Publishes the time of the third latest recorded call.
    ///
    /// Of two consecutive calls one is after a poll, and the result of a poll is counted after its call.
    /// So between the third latest call and now one poll was complete, and its result has been counted.
    #[cold]
    fn has_polled(&self) {
        let now = now_ns();
        let [checked_ns, second, third] = self.times_ns.get();
        if now.saturating_sub(third) < PUBLISHED_NS {
            return;
        }
        self.times_ns.set([second, third, now]);
        let Some(slot) = self.slot.get().filter(|_| checked_ns > 0) else {
            return;
        };
        if self.lane != SEVERAL {
            found_nothing(self.lane, checked_ns);
        }
        publish(slot, checked_ns, now);
    }
}

impl Drop for Wait {
    #[inline]
    fn drop(&mut self) {
        if let Some(slot) = self.slot.get() {
            free_slot(slot);
        }
    }
}

/// A thread's wait in lane 0.
struct BaseWait {
    /// The number on the state page of the thread's latest call, or 0 and the name of the function.
    call: Cell<(u16, &'static str)>,
    polls: Cell<u32>,
    slot: Cell<Option<usize>>,
    /// A time before the latest poll.
    before_ns: Cell<u64>,
}

thread_local! {
    static IN_BASE: BaseWait = const {
        BaseWait {
            call: Cell::new((0, "")),
            polls: Cell::new(0),
            slot: Cell::new(None),
            before_ns: Cell::new(0),
        }
    };
}

/// Records the thread's call, by its number on the state page, before it waits in lane 0.
#[inline]
pub fn enter_base(call: u16) {
    IN_BASE.with(|wait| wait.call.set((call, "")));
}

/// As [`enter_base`], by the name of the function.
pub fn enter_base_in(call: &'static str) {
    IN_BASE.with(|wait| wait.call.set((0, call)));
}

/// Ends the description of a wait in lane 0, at the end of the call.
#[inline]
pub fn leave_base() {
    IN_BASE.with(|wait| {
        if wait.polls.get() > 0 {
            wait.polls.set(0);
            wait.before_ns.set(0);
            if let Some(slot) = wait.slot.take() {
                free_slot(slot);
            }
        }
    });
}

/// Called after each poll of a wait in lane 0 whose condition is false, under the lock of lane 0.
/// `busy` is true if the poll has found something.
pub fn polled_in_base(busy: bool) {
    if busy {
        found(0);
    }
    IN_BASE.with(|wait| {
        let polls = wait.polls.get().wrapping_add(1);
        wait.polls.set(polls.max(1));
        if polls % AGAIN == SHORT && wait.slot.get().is_none() {
            let call = match wait.call.get() {
                (0, name) => number_of(name),
                (number, _) => number,
            };
            let slot = take_slot(own_id(), 0, call, &About::default());
            wait.slot.set(slot);
        } else if polls > SHORT {
            has_polled_in_base(wait, busy);
        }
    });
}

#[cold]
fn has_polled_in_base(wait: &BaseWait, busy: bool) {
    let now = now_ns();
    let checked_ns = wait.before_ns.get();
    if now.saturating_sub(checked_ns) < PUBLISHED_NS {
        return;
    }
    wait.before_ns.set(now);
    let Some(slot) = wait.slot.get().filter(|_| checked_ns > 0 && !busy) else {
        return;
    };
    if let Some((_, others)) = described() {
        (others.record_outside)();
    }
    found_nothing(0, checked_ns);
    publish(slot, checked_ns, now);
}
