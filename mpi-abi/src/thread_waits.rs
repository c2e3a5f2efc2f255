//! Long waits of this process's threads, while its messages have lanes: what each thread waits for,
//! and evidence that only other ranks can end the waits ([`ThreadWaits`]).
//!
//! The launcher reads both for the hang report and for the proof that a job cannot continue.
//! A short wait costs one counter; a wait is described after [`SHORT`] polls without a result.
//! A thread that waits in a lane has a [`Wait`].
//! A thread that waits in lane 0 is described by the hooks of its lock ([`polled_in_base`]),
//! and the state page describes the event for which it waits.
//! A thread has one slot at most. If a callback of the program waits while its caller waits, too,
//! the slot describes the wait of the callback. After the callback the wait of its caller is described again.
//!
//! Evidence: a thread records the time before its latest complete poll without a result.
//! The first such thread after [`PERIOD_NS`] also polls each lane in which no thread waits ([`Sources::poll_idle`]).
//! The counts of polls that have found something belong to a lane and are written under its lock.

use crate::functions::id_of;
use mpi_base::clock::now_ns;
use mpi_base::cpu::this_thread;
use mpi_base::race_detectors;
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
pub struct Sources {
    /// Polls each lane that no thread has polled recently ([`is_polled`]) and whose lock is free.
    pub poll_idle: fn(),
    /// Records the messages of lane 0's transports and whether another job could end a wait.
    /// The caller holds the lock of lane 0.
    pub record_outside: fn(),
}

/// The page on which waits are described, and the sources of evidence.
static DESCRIPTION: OnceLock<(&'static ThreadWaits, Sources)> = OnceLock::new();

/// The number of lanes in use; 0 while waits are not described.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// The time at which idle lanes were last polled.
static POLLED_IDLE_NS: AtomicU64 = AtomicU64::new(0);

/// Describes waits from now on, in a process with this number of lanes.
pub fn begin(page: &'static ThreadWaits, lanes: usize, sources: Sources) {
    // Threads of several lanes access these words with atomic loads and stores.
    race_detectors::exclude(page);
    race_detectors::exclude(&POLLS);
    let _ = DESCRIPTION.set((page, sources));
    COUNT.store(lanes.min(LANES), Relaxed);
}

/// Ends the description of waits, also that of the calling thread.
pub fn end() {
    end_description();
    COUNT.store(0, Relaxed);
}

fn described() -> Option<(&'static ThreadWaits, Sources)> {
    DESCRIPTION
        .get()
        .copied()
        .filter(|_| COUNT.load(Relaxed) > 0)
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
    let Some((page, sources)) = described() else {
        return;
    };
    let last = POLLED_IDLE_NS.load(Relaxed);
    let is_due = now_ns.saturating_sub(last) >= PERIOD_NS;
    if is_due && (POLLED_IDLE_NS.compare_exchange(last, now_ns, Relaxed, Relaxed)).is_ok() {
        (sources.poll_idle)();
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

thread_local! {
    /// The slot of the calling thread. It describes the innermost wait that has taken one.
    static OWN_SLOT: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Takes a slot that describes a wait of the calling thread, and frees that of an outer wait.
/// Returns false if all slots are taken.
#[cold]
fn describe(lane: usize, call: u16, about: &About) -> bool {
    end_description();
    let take = |page: &ThreadWaits| page.begin(own_id(), (lane as u32, call), about, now_ns());
    OWN_SLOT.set(page().and_then(take));
    OWN_SLOT.get().is_some()
}

/// Frees the slot of the calling thread. Waits that began before the end of lanes end on the same page.
#[cold]
fn end_description() {
    if let (Some(slot), Some((page, _))) = (OWN_SLOT.take(), DESCRIPTION.get()) {
        page.end(slot, now_ns());
    }
}

/// Returns the slot of the calling thread, if it describes a wait that has taken a slot.
/// An inner wait may have taken another one since, and has then freed it.
fn slot_of(is_described: &Cell<bool>) -> Option<usize> {
    OWN_SLOT.get().filter(|_| is_described.get())
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

/// A wait of the calling thread in a lane other than 0, or in several lanes.
pub struct Wait {
    lane: usize,
    /// The name of the MPI function.
    call: &'static str,
    /// The kernel's ID of the waiting thread, which makes the first call of [`Wait::note_false`].
    thread: Cell<u32>,
    polls: Cell<u32>,
    /// True if the wait has taken a slot.
    is_described: Cell<bool>,
    /// The times of three calls of [`Wait::note_false`], at least [`PUBLISHED_NS`] apart, the latest last.
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
            is_described: Cell::new(false),
            times_ns: Cell::new([0; 3]),
        }
    }

    /// Called whenever the wait's condition has been false after a poll, or once more before a sleep.
    /// Returns false, so it can be the last part of a condition.
    #[inline]
    pub fn note_false(&self, about: impl FnOnce() -> About) -> bool {
        let polls = self.polls.get().wrapping_add(1);
        if polls == 1 {
            self.thread.set(own_id());
        } else if self.thread.get() != own_id() {
            // Another thread may check the condition under the lane's lock. It describes nothing and polls nothing.
            return false;
        }
        self.polls.set(polls.max(1));
        if polls % AGAIN == SHORT && slot_of(&self.is_described).is_none() {
            let is_described = describe(self.lane, number_of(self.call), &about());
            self.is_described.set(is_described);
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
        let Some(slot) = slot_of(&self.is_described).filter(|_| checked_ns > 0) else {
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
        if self.is_described.get() {
            end_description();
        }
    }
}

/// A thread's innermost call in lane 0, and its wait.
struct BaseWait {
    /// The number of the call on the state page, or 0 and the name of the function; 0 and no name outside of calls.
    call: Cell<(u16, &'static str)>,
    polls: Cell<u32>,
    /// True if the wait has taken a slot.
    is_described: Cell<bool>,
    /// A time before the latest poll.
    before_ns: Cell<u64>,
}

thread_local! {
    static IN_BASE: BaseWait = const {
        BaseWait {
            call: Cell::new(OUTSIDE),
            polls: Cell::new(0),
            is_described: Cell::new(false),
            before_ns: Cell::new(0),
        }
    };
}

/// The call of a thread outside of calls.
const OUTSIDE: (u16, &str) = (0, "");

/// The call in lane 0 from whose callback a call begins: its number, whether its wait was described, and its polls, in one word.
/// 0 for a call that does not begin in a callback.
pub type OuterCall = u64;

impl BaseWait {
    fn number(&self) -> u16 {
        match self.call.get() {
            (0, name) => number_of(name),
            (number, _) => number,
        }
    }

    #[cold]
    fn to_outer(&self) -> OuterCall {
        let is_described = u64::from(self.is_described.get()) << 16;
        u64::from(self.number()) | is_described | u64::from(self.polls.get()) << 32
    }

    fn begin(&self, call: (u16, &'static str)) -> OuterCall {
        let (number, name) = self.call.get();
        let outer = match number == 0 && name.is_empty() {
            true => 0,
            false => self.to_outer(),
        };
        if outer != 0 {
            self.continue_outer(0);
        }
        self.call.set(call);
        outer
    }

    #[cold]
    fn continue_outer(&self, outer: OuterCall) {
        self.call.set((outer as u16, ""));
        self.is_described.set(outer >> 16 & 1 != 0);
        self.polls.set((outer >> 32) as u32);
        // The next time is taken before the next poll of this wait.
        self.before_ns.set(0);
    }
}

/// Records the thread's call, by its number on the state page, before it waits in lane 0.
/// The result belongs to [`leave_base`].
#[inline]
pub fn enter_base(call: u16) -> OuterCall {
    IN_BASE.with(|wait| wait.begin((call, "")))
}

/// Ends the description of a wait in lane 0, at the end of the call.
#[inline]
pub fn leave_base(outer: OuterCall) {
    IN_BASE.with(|wait| {
        if wait.is_described.get() {
            end_description();
        }
        if wait.polls.get() > 0 || outer != 0 {
            wait.continue_outer(outer);
        }
        wait.call.set((outer as u16, ""));
    });
}

/// Runs a wait in lane 0, in a call of the function `call`.
pub fn in_base<R>(call: &'static str, wait: impl FnOnce() -> R) -> R {
    /// Leaves also if the wait panics.
    struct Call(OuterCall);
    impl Drop for Call {
        fn drop(&mut self) {
            leave_base(self.0);
        }
    }
    let _call = Call(IN_BASE.with(|wait| wait.begin((0, call))));
    wait()
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
        if polls % AGAIN == SHORT && slot_of(&wait.is_described).is_none() {
            let is_described = describe(0, wait.number(), &About::default());
            wait.is_described.set(is_described);
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
    let Some(slot) = slot_of(&wait.is_described).filter(|_| checked_ns > 0 && !busy) else {
        return;
    };
    if let Some((_, sources)) = described() {
        (sources.record_outside)();
    }
    found_nothing(0, checked_ns);
    publish(slot, checked_ns, now);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets waits be described on a page, which exists until the process ends.
    /// Page and counts belong to the process, so only one test may call this function.
    fn begin_on_page() -> &'static ThreadWaits {
        let page: &'static ThreadWaits = Box::leak(Box::default());
        let sources = Sources {
            poll_idle: || {},
            record_outside: || {},
        };
        begin(page, 2, sources);
        page
    }

    /// Returns the lanes and calls of the described waits of this thread.
    fn described_waits(page: &ThreadWaits) -> Vec<(u32, u16)> {
        let waits = page.snapshot().map_or_else(Vec::new, |seen| seen.waits);
        let own = waits.iter().filter(|wait| wait.thread == own_id());
        own.map(|wait| (wait.lane, wait.call)).collect()
    }

    fn poll_in_base(polls: u32) {
        (0..polls).for_each(|_| polled_in_base(false));
    }

    #[test]
    fn the_innermost_long_wait_of_a_thread_is_described_and_then_the_outer_one_again() {
        const OUTER: u16 = 5;
        const INNER: u16 = 7;
        let page = begin_on_page();
        let seen = || described_waits(page);
        let outer = enter_base(OUTER);
        poll_in_base(SHORT);
        assert_eq!(seen(), [(0, OUTER)]);

        // A short call of a callback.
        let from_callback = enter_base(INNER);
        poll_in_base(1);
        assert_eq!(seen(), [(0, OUTER)]);
        leave_base(from_callback);
        assert_eq!(seen(), [(0, OUTER)], "the outer wait goes on");
        leave_base(outer);
        assert_eq!(seen(), [], "the outer wait has ended");
        let outer = enter_base(OUTER);
        poll_in_base(SHORT);

        // A callback that waits for long in lane 0, and one that waits in lane 1.
        let from_callback = enter_base(INNER);
        poll_in_base(SHORT);
        assert_eq!(seen(), [(0, INNER)]);
        leave_base(from_callback);
        assert_eq!(seen(), []);
        poll_in_base(AGAIN);
        assert_eq!(seen(), [(0, OUTER)]);
        let wait = Wait::new(1, "MPI_Recv");
        (0..SHORT).for_each(|_| {
            wait.note_false(About::default);
        });
        assert_eq!(seen(), [(1, number_of("MPI_Recv"))]);
        drop(wait);
        assert_eq!(seen(), []);
        poll_in_base(AGAIN);
        assert_eq!(seen(), [(0, OUTER)]);

        // A wait by name, whose callback waits.
        let from_callback = in_base("MPI_Waitany", || {
            let from_callback = enter_base(INNER);
            poll_in_base(SHORT);
            leave_base(from_callback);
            poll_in_base(AGAIN);
            seen()
        });
        assert_eq!(from_callback, [(0, number_of("MPI_Waitany"))]);
        leave_base(outer);
        assert_eq!(seen(), []);
        assert_eq!(page.snapshot(), None, "no slot is left");
        assert_eq!(enter_base(OUTER), 0, "the thread was outside of calls");
        leave_base(0);
    }
}
