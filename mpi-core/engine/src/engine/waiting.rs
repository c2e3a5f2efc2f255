//! The wait state of a process: its wait policy, load balancing, doorbell, and functions of the layers above.

use super::balance::Balance;
use super::spin_hold::spin_hold;
use mpi_base::clock::now_ns;
use mpi_base::cpu::Cores;
use mpi_base::descriptor_doorbell::DescriptorDoorbell;
use mpi_base::node::{Node, NodeError};
use mpi_base::occupancy::Occupancy;
use mpi_base::wait::{LastYield, WaitPolicy, Waiter};
use mpi_base::yield_now::{Yielded, timed_yield};
use std::cell::{Cell, OnceCell};

/// Functions by which several threads of a process wait in one engine.
/// If each thread has a core, one thread polls for all;
/// otherwise each thread polls for itself and yields to the others between polls.
#[derive(Clone, Copy, Debug)]
pub struct Threads {
    /// Performs a wait step for the calling thread, which has polled one time.
    pub wait_step: fn(Polled<'_>) -> ThreadStep,
    /// Returns true if a thread waits to begin an MPI call, so that no thread may sleep.
    pub wanted: fn() -> bool,
    /// Returns true if no second thread of this process has ever called MPI.
    pub is_alone: fn() -> bool,
}

/// The condition of a wait.
pub type Condition<'a> = dyn FnMut() -> bool + 'a;

/// The result of a thread's last poll in a wait.
pub struct Polled<'a> {
    /// True if the poll has done work, possibly for other threads.
    pub busy: bool,
    /// True if the thread slept before the poll, or requests have completed, so that other threads' waits may be complete.
    pub slept: bool,
    /// True if the thread may yield its core as its wait step.
    pub may_yield: bool,
    /// The condition of the wait, if only polls and calls of the process's threads can make it true.
    /// A thread that polls may evaluate it while this thread waits outside of the engine.
    pub awaits: Option<&'a mut Condition<'a>>,
}

/// The result of [`Threads::wait_step`]: what was done instead of the engine's own wait step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadStep {
    /// Nothing: the thread polls for all threads, and waits as in a process with one thread.
    Alone,
    /// Another thread has polled and done work.
    Followed,
    /// Other threads polled, but none has found within the time limit of this thread's sleep that its wait is complete.
    TimedOut,
    /// The thread yielded the core and the engine to the other threads.
    Yielded(Yielded),
}

/// Maximum number of consecutive waits that sleep without yielding first;
/// reached after the fourth yield that took 4 ms, a time slice.
const MOST_WAITS: u32 = 2000;

/// The maximum of k in [`Waiting::meets_load`]; 2^k is then no bound.
const MOST_LONG_YIELDS: u32 = MOST_WAITS.ilog2() + 1;

/// The number of short yields that cancel one long yield.
/// A wait beside a process that computes in bursts also has two or three short yields, to other ranks.
const SHORT_YIELDS: u32 = 4;

/// If a program polls (for example by `MPI_Test`), only every `COMPLETE`th consecutive empty poll
/// makes progress.
const COMPLETE: u32 = 16;

/// The wait state of a process: how it uses its core between polls, and functions of the layers above.
pub struct Waiting {
    policy: WaitPolicy,
    occupancy: Occupancy,
    /// Load balancing; `Some` if the node is oversubscribed and has no CPU quota.
    balance: Option<Balance>,
    /// Waits for the doorbell and for transports' descriptors at the same time; created at the first such sleep.
    descriptors: OnceCell<Option<DescriptorDoorbell>>,
    /// The number of further waits that sleep without yielding, because a process on this core computes.
    beside_load: Cell<u32>,
    /// [`SHORT_YIELDS`] times the number of recent long yields minus the number of recent short ones, at least 0.
    long_yields: Cell<u32>,
    /// The number of yields that took most of a time slice.
    slices: Cell<u32>,
    /// Number of consecutive polls without work by calls that do not wait.
    idle: Cell<u32>,
    relax: Cell<Option<fn()>>,
    threads: Cell<Option<&'static Threads>>,
    /// True if this process has slept since the last call of [`Waiting::take_slept`].
    slept: Cell<bool>,
    /// The number of completed requests at the last wait step.
    completions: Cell<u64>,
    watch: Cell<Option<fn()>>,
    /// When a polling program last called the watch function, in ns.
    watched_ns: Cell<u64>,
    /// The number of waits that have slept. For the latest of them, `since_ns` is the start time
    /// of its first poll before a sleep, `check_ns` that of its latest poll before a sleep.
    slept_waits: Cell<u64>,
    since_ns: Cell<u64>,
    check_ns: Cell<u64>,
    /// The number of sleeps; `asleep_ns` is the time spent in them.
    sleeps: Cell<u64>,
    asleep_ns: Cell<u64>,
    /// The number of sleeps that ended by timeout, and after which the next poll of the same wait found something.
    late_sleeps: Cell<u64>,
}

impl Waiting {
    /// Creates the wait state of a process on a node with `ranks` ranks, which may use these cores.
    pub(super) fn of(node: &Node, cores: &Cores, ranks: usize) -> Result<Waiting, NodeError> {
        let occupancy = Occupancy::of(cores.usable, cores.shared_by(ranks));
        let oversubscribed = occupancy == Occupancy::Oversubscribed;
        if oversubscribed {
            // This process will sleep often,
            // and a fence in every process at each sleep would cost more than a fence at each message.
            node.my_inbox().doorbell().ask_for_fences();
        }
        // Under a CPU quota some cores are idle,
        // but spreading ranks over them would only exhaust the quota sooner.
        let spreads = oversubscribed && !cores.limited_by_quota();
        let balance = spreads.then(|| Balance::of(node));
        Ok(Waiting {
            policy: WaitPolicy::of(occupancy)
                .for_ranks(cores.shared_by(ranks).div_ceil(cores.usable)),
            occupancy,
            balance: balance.transpose()?,
            descriptors: OnceCell::new(),
            beside_load: Cell::new(0),
            long_yields: Cell::new(0),
            slices: Cell::new(0),
            idle: Cell::new(0),
            relax: Cell::new(None),
            threads: Cell::new(None),
            slept: Cell::new(false),
            completions: Cell::new(0),
            watch: Cell::new(None),
            watched_ns: Cell::new(0),
            slept_waits: Cell::new(0),
            since_ns: Cell::new(0),
            check_ns: Cell::new(0),
            sleeps: Cell::new(0),
            asleep_ns: Cell::new(0),
            late_sleeps: Cell::new(0),
        })
    }

    /// Returns the wait policy of this process.
    #[inline]
    pub fn policy(&self) -> WaitPolicy {
        self.policy
    }

    /// Returns the policy for a wait that begins now.
    #[inline]
    pub(super) fn policy_of_next_wait(&self) -> WaitPolicy {
        match self.take_beside_load() {
            true => self.policy.without_yields(),
            false => self.policy,
        }
    }

    /// Called after a yield during which another process computed on this core.
    /// The next n waits sleep without yielding, where n is at most yield time / 2 us.
    ///
    /// The first yield after these waits tests whether the process still computes.
    /// If it takes the same time again, and n is not bounded as below, it costs 2 us per wait on average.
    ///
    /// A yield below a time slice has often met a rank that uses memory for the first time,
    /// and the first yields of a time slice have met ranks in `MPI_Init`.
    /// Sleeping in hundreds of waits after them would cost a wake-up in each of a program's first calls.
    /// So n is at most 2^k after a yield below a time slice, where k is the number of earlier long yields
    /// that short yields have not cancelled, and [`Waiting::bound_after_slice`] after a longer one.
    #[cold]
    pub(super) fn meets_load(&self, took: Yielded) {
        let count = self.long_yields.get();
        let before = count / SHORT_YIELDS;
        self.long_yields
            .set((count + SHORT_YIELDS).min(MOST_LONG_YIELDS * SHORT_YIELDS));
        let bound = match took < Yielded::SLICE {
            true => 1 << before,
            false => self.bound_after_slice(),
        };
        let waits = took.waits_until_next().min(bound);
        self.beside_load.set(self.beside_load.get().max(waits));
    }

    /// Returns the maximum number of waits after a yield of a time slice: 1, 16, 256, then [`MOST_WAITS`].
    fn bound_after_slice(&self) -> u32 {
        let before = self.slices.get();
        self.slices.set(before.saturating_add(1));
        16_u32.saturating_pow(before).min(MOST_WAITS)
    }

    /// Called after a yield during which no process computed on this core.
    #[inline(always)]
    fn meets_no_load(&self) {
        self.long_yields
            .set(self.long_yields.get().saturating_sub(1));
    }

    /// Records the last yield of this wait, if it has yielded since the last call.
    #[inline]
    pub(super) fn note_load(&self, waiter: &mut Waiter) {
        match waiter.take_yield() {
            LastYield::None => {}
            LastYield::Short => self.meets_no_load(),
            LastYield::Long(took) => self.meets_load(took),
        }
    }

    /// Returns true if a process computed on this core during a recent yield, so that a wait should sleep without yielding.
    #[inline(always)]
    pub fn is_beside_load(&self) -> bool {
        self.beside_load.get() > 0
    }

    /// Same as [`Waiting::is_beside_load`]; counts down the waits that sleep without yielding.
    #[inline(always)]
    pub(super) fn take_beside_load(&self) -> bool {
        let left = self.beside_load.get();
        self.beside_load.set(left.saturating_sub(1));
        left > 0
    }

    /// Returns the number of further waits that sleep without yielding.
    pub fn waits_beside_load(&self) -> u32 {
        self.beside_load.get()
    }

    /// Returns the number of sleeps, and the time spent in them in ns.
    pub fn asleep(&self) -> (u64, u64) {
        (self.sleeps.get(), self.asleep_ns.get())
    }

    /// Counts a sleep of `took_ns` ns.
    pub(super) fn add_sleep(&self, took_ns: u64) {
        self.sleeps.set(self.sleeps.get() + 1);
        self.asleep_ns.set(self.asleep_ns.get() + took_ns);
    }

    /// Returns the number of sleeps that only their time limit has ended, although there was something to find.
    ///
    /// An event without a doorbell, such as a store in shared memory, ends a sleep in this way.
    /// A message does so only if it arrived between the end of the sleep and the next poll.
    pub fn late_sleeps(&self) -> u64 {
        self.late_sleeps.get()
    }

    /// Counts a late sleep.
    #[cold]
    pub(super) fn note_late_sleep(&self) {
        self.late_sleeps.set(self.late_sleeps.get() + 1);
    }

    /// Returns whether the ranks of this node have a core each or are oversubscribed.
    #[inline]
    pub fn occupancy(&self) -> Occupancy {
        self.occupancy
    }

    /// Returns true if the ranks of this node are oversubscribed, so that a waiting rank must yield its core.
    #[inline]
    pub fn is_oversubscribed(&self) -> bool {
        self.occupancy == Occupancy::Oversubscribed
    }

    /// Yields the core, and migrates this rank if another core has fewer ranks; for oversubscribed ranks.
    ///
    /// If a process on this core computes, returns immediately,
    /// because the yield would take a time slice; the caller should then sleep.
    #[inline(always)]
    pub fn give_core_away(&self) {
        if self.take_beside_load() {
            return;
        }
        let took = timed_yield();
        match took > Yielded::LONG {
            true => self.meets_load(took),
            false => self.meets_no_load(),
        }
        self.waits();
    }

    /// Spins briefly on an oversubscribed core, unless earlier spins had no success. Returns true if `done` has returned true.
    pub fn hold_core(&self, mut done: impl FnMut() -> bool) -> bool {
        spin_hold(&mut done)
    }

    /// Spins on `done` without making progress; does not spin on an oversubscribed node. Returns true if `done` has returned true.
    #[inline]
    pub fn spin(&self, done: &mut impl FnMut() -> bool) -> bool {
        /// Maximum number of polls of `done`.
        const LOOKS: u32 = 512;
        /// Number of polls, from the first on, without a pause in between;
        /// a pause takes about as long as the transfer of a cache line between cores.
        const EAGER: u32 = 256;
        if done() {
            return true;
        }
        if self.is_oversubscribed() {
            return false;
        }
        for look in 0..LOOKS {
            if done() {
                return true;
            }
            if look >= EAGER {
                std::hint::spin_loop();
            }
        }
        false
    }

    /// Waits briefly for an event that a process on this node should soon cause:
    /// spins if each process has a core, otherwise yields one time.
    /// Returns true if `done` has returned true.
    #[inline]
    pub fn briefly(&self, mut done: impl FnMut() -> bool) -> bool {
        if !self.is_oversubscribed() {
            return self.spin(&mut done);
        }
        if done() {
            return true;
        }
        self.give_core_away();
        done() || self.hold_core(done)
    }

    /// Counts a yield of this waiting rank for the load balancing.
    #[inline(always)]
    pub(super) fn waits(&self) {
        if let Some(balance) = &self.balance {
            balance.waits();
        }
    }

    /// Publishes for the load balancing that this rank is about to sleep.
    pub(super) fn sleeps(&self) {
        if let Some(balance) = &self.balance {
            balance.sleeps();
        }
    }

    /// Returns true if the next poll should only check for messages and not make progress.
    ///
    /// Every [`COMPLETE`]th consecutive empty poll makes progress anyway,
    /// so other events are only delayed by a few polls.
    #[inline]
    pub(super) fn may_skip_progress(&self) -> bool {
        !self.idle.get().is_multiple_of(COMPLETE)
    }

    /// Counts a poll. Returns true if the caller should yield its core, because enough consecutive polls were empty.
    #[inline]
    pub(super) fn has_looked(&self, busy: bool) -> bool {
        let idle = if busy { 0 } else { self.idle.get() + 1 };
        let enough = idle >= self.policy.looks;
        self.idle.set(if enough { 0 } else { idle });
        enough
    }

    /// Returns the object that waits for the doorbell and for descriptors at the same time, if the operating system supports it.
    pub(super) fn descriptors(&self) -> Option<&DescriptorDoorbell> {
        let made = self
            .descriptors
            .get_or_init(|| DescriptorDoorbell::new().ok());
        made.as_ref()
    }

    #[inline]
    pub(super) fn threads(&self) -> Option<&'static Threads> {
        self.threads.get()
    }

    /// Sets the functions by which waiting threads share polling; without them only one thread waits at a time.
    pub fn set_threads(&self, threads: Option<&'static Threads>) {
        self.threads.set(threads);
    }

    /// Returns true if this process has slept since the last call.
    pub(super) fn take_slept(&self) -> bool {
        self.slept.take()
    }

    /// Returns true if the number of completed requests has changed since the last call.
    #[inline]
    pub(super) fn have_completed(&self, completions: u64) -> bool {
        self.completions.replace(completions) != completions
    }

    /// Records that this process has slept.
    pub(super) fn note_sleep(&self) {
        self.slept.set(true);
    }

    /// Between two polls of a wait, calls the function of [`Waiting::set_relax`], which lets other threads of this process use the engine.
    #[inline]
    pub fn let_threads_in(&self) {
        if let Some(relax) = self.relax.get() {
            relax();
        }
    }

    /// Sets the function that is called between two polls of a wait, to let other threads in.
    pub fn set_relax(&self, relax: Option<fn()>) {
        self.relax.set(relax);
    }

    /// Records the start of a poll before a sleep; `is_new` is true for the first such poll of a wait.
    pub(super) fn begins_check(&self, now_ns: u64, is_new: bool) {
        self.check_ns.set(now_ns);
        if is_new {
            self.slept_waits.set(self.slept_waits.get() + 1);
            self.since_ns.set(now_ns);
        }
    }

    /// Returns the number of waits that have slept, and for the latest of them
    /// the start times of its first and its latest poll before a sleep.
    pub(super) fn check(&self) -> (u64, u64, u64) {
        let times = (self.since_ns.get(), self.check_ns.get());
        (self.slept_waits.get(), times.0, times.1)
    }

    /// Calls the watch function ([`Waiting::set_watch`]).
    pub(super) fn call_watch(&self) {
        if let Some(watch) = self.watch.get() {
            watch();
        }
    }

    /// Yields the core, because the process for which a polling program waits may need it.
    #[cold]
    pub(super) fn rest_from_polling(&self) {
        /// Minimum time in ns between two calls of the watch function ([`Waiting::set_watch`]).
        const OFTEN_NS: u64 = 10_000_000;
        self.give_core_away();
        // The awaited process may be dead, which the watch function would report.
        let now_ns = now_ns();
        if now_ns.saturating_sub(self.watched_ns.get()) >= OFTEN_NS {
            self.watched_ns.set(now_ns);
            self.call_watch();
        }
    }

    /// Sets the watch function, which is called before every sleep of a wait; `mpi-abi` checks in it whether the launcher is alive.
    pub fn set_watch(&self, watch: Option<fn()>) {
        self.watch.set(watch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_sixteen_empty_polls_makes_progress_whether_ranks_share_cores_or_not() {
        let fd = Node::create(1).unwrap();
        let node = Node::attach(&fd, 0).unwrap();
        let cores = Cores::of_this_process();
        for ranks in [1, cores.usable + 1] {
            let waiting = Waiting::of(&node, &cores, ranks).unwrap();
            assert!(!waiting.may_skip_progress(), "the first poll");
            let mut complete = 0;
            for _ in 0..1_600 {
                complete += u32::from(!waiting.may_skip_progress());
                waiting.has_looked(false);
            }
            assert_eq!(complete, 100);
            waiting.has_looked(true);
            assert!(!waiting.may_skip_progress(), "after a message");
        }
    }

    #[test]
    fn waits_after_a_long_yield_sleep_without_one_until_their_count_ends() {
        let fd = Node::create(1).unwrap();
        let node = Node::attach(&fd, 0).unwrap();
        let cores = Cores::of_this_process();
        let ranks = cores.usable + 1;
        let waiting = Waiting::of(&node, &cores, ranks).unwrap();
        let yields = || waiting.policy_of_next_wait().yields;
        assert_eq!(yields(), WaitPolicy::OVERSUBSCRIBED.yields);
        let waits_after = |micros| {
            waiting.meets_load(Yielded::micros(micros));
            let waits = waiting.waits_beside_load();
            (0..waits).for_each(|_| assert_eq!(yields(), 0));
            waits
        };
        assert_eq!([(); 3].map(|()| waits_after(400)), [1, 2, 4]);
        (0..SHORT_YIELDS).for_each(|_| waiting.meets_no_load());
        assert_eq!(waits_after(400), 4);
        (0..20).for_each(|_| waiting.meets_no_load());
        assert_eq!([(); 4].map(|()| waits_after(4_000)), [1, 16, 256, 2_000]);
        // A longer suspension, such as that of a virtual machine, leads to the maximum number of waits.
        for (millis, waits) in [(4, 2_000), (4_000, 2_000)] {
            waiting.meets_load(Yielded::micros(1_000 * millis));
            assert!(waiting.is_beside_load());
            assert_eq!(waiting.waits_beside_load(), waits);
            for _ in 0..waits {
                assert_eq!(yields(), 0);
            }
            assert!(!waiting.is_beside_load());
            assert_eq!(yields(), WaitPolicy::OVERSUBSCRIBED.yields);
        }
    }
}
