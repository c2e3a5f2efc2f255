//! The wait state of a process: its policy, its load balancing, its doorbell, and the callbacks of the layers above.

use super::balance::Balance;
use mpi_base::cpu::Cores;
use mpi_base::descriptor_doorbell::DescriptorDoorbell;
use mpi_base::node::{Node, NodeError};
use mpi_base::occupancy::Occupancy;
use mpi_base::wait::{WaitPolicy, Waiter};
use mpi_base::yield_now::Yielded;
use std::cell::{Cell, OnceCell};

/// How several threads of a process wait in one engine: with a core for each, one thread polls for all and the others follow it;
/// without, each polls for itself and yields to the others between polls.
#[derive(Clone, Copy, Debug)]
pub struct Threads {
    /// Waits one step on behalf of the caller, which has polled once.
    pub wait_step: fn(Polled) -> ThreadStep,
    /// Returns true if a thread waits to begin a call, so that no thread may sleep.
    pub wanted: fn() -> bool,
    /// Returns true if no second thread of this process has ever called MPI.
    pub is_alone: fn() -> bool,
}

/// A thread's last poll in a wait.
#[derive(Clone, Copy, Debug)]
pub struct Polled {
    /// The poll has found something, perhaps for other threads.
    pub busy: bool,
    /// The thread slept before the poll, so something may have arrived meanwhile.
    pub slept: bool,
    /// The thread may yield its core instead of a step of its own.
    pub may_yield: bool,
}

/// What was done for a thread in place of a step of its wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadStep {
    /// Nothing: the thread polls for all, and waits as the only thread of a process does.
    Alone,
    /// Another thread has polled, and something has happened.
    Followed,
    /// The other threads had the core and the engine.
    Yielded(Yielded),
}

/// The largest number of waits in a row that sleep without a yield: the number after a yield of a time slice of 4 ms.
const MOST_WAITS: u32 = 2000;

pub(super) struct Waiting {
    policy: WaitPolicy,
    occupancy: Occupancy,
    /// Present on an oversubscribed node.
    balance: Option<Balance>,
    /// Waits for the doorbell and for transports' descriptors at once; created by the first such sleep.
    descriptors: OnceCell<Option<DescriptorDoorbell>>,
    /// The remaining waits that sleep without a yield, since a computing process shares this core.
    beside_load: Cell<u32>,
    /// Consecutive empty polls by calls that do not wait.
    idle: Cell<u32>,
    relax: Cell<Option<fn()>>,
    threads: Cell<Option<Threads>>,
    /// Whether this process has slept since the polling thread last notified its followers.
    slept: Cell<bool>,
    watch: Cell<Option<fn()>>,
    /// When a polling program last checked that waiting still makes sense.
    watched_ns: Cell<u64>,
    /// The number of waits that have slept, and when the latest poll before a sleep began.
    slept_waits: Cell<u64>,
    check_ns: Cell<u64>,
}

impl Waiting {
    /// Creates the wait state of a process of a node with `ranks` ranks and these usable cores.
    pub fn of(node: &Node, cores: &Cores, ranks: usize) -> Result<Waiting, NodeError> {
        let occupancy = Occupancy::of(cores.usable, cores.shared_by(ranks));
        let oversubscribed = occupancy == Occupancy::Oversubscribed;
        if oversubscribed {
            // This process will sleep often, and a fence in every process for each sleep would cost more than one for each message.
            node.my_inbox().doorbell().ask_for_fences();
        }
        // If a CPU quota is the limit, cores are idle; spreading ranks over them would only use up the quota sooner.
        let spreads = oversubscribed && !cores.limited_by_quota();
        let balance = spreads.then(|| Balance::of(node));
        Ok(Waiting {
            policy: WaitPolicy::of(occupancy)
                .for_ranks(cores.shared_by(ranks).div_ceil(cores.usable)),
            occupancy,
            balance: balance.transpose()?,
            descriptors: OnceCell::new(),
            beside_load: Cell::new(0),
            idle: Cell::new(0),
            relax: Cell::new(None),
            threads: Cell::new(None),
            slept: Cell::new(false),
            watch: Cell::new(None),
            watched_ns: Cell::new(0),
            slept_waits: Cell::new(0),
            check_ns: Cell::new(0),
        })
    }

    #[inline]
    pub fn policy(&self) -> WaitPolicy {
        self.policy
    }

    /// Returns the policy of a wait that begins now.
    #[inline]
    pub fn policy_of_next_wait(&self) -> WaitPolicy {
        match self.take_beside_load() {
            true => self.policy.without_yields(),
            false => self.policy,
        }
    }

    /// A yield gave this core to a process that computes: the next waits sleep without one.
    ///
    /// The yield after them tests whether that process still computes. If it takes as long as this one, that is 2 us for each of these waits.
    #[cold]
    pub fn meets_load(&self, took: Yielded) {
        let waits = took.waits_until_next().min(MOST_WAITS);
        self.beside_load.set(self.beside_load.get().max(waits));
    }

    /// As [`Waiting::meets_load`], for a yield of this wait, if it was long.
    #[inline]
    pub fn note_load(&self, waiter: &Waiter) {
        if let Some(took) = waiter.has_met_load() {
            self.meets_load(took);
        }
    }

    /// Returns true if, as far as this process knows, a yield would give the core to a computing process.
    #[inline(always)]
    pub fn is_beside_load(&self) -> bool {
        self.beside_load.get() > 0
    }

    /// As [`Waiting::is_beside_load`], and counts one wait.
    #[inline(always)]
    pub fn take_beside_load(&self) -> bool {
        let left = self.beside_load.get();
        self.beside_load.set(left.saturating_sub(1));
        left > 0
    }

    #[inline]
    pub fn occupancy(&self) -> Occupancy {
        self.occupancy
    }

    /// Counts a yield of this rank, which goes on waiting.
    #[inline(always)]
    pub fn waits(&self) {
        if let Some(balance) = &self.balance {
            balance.waits();
        }
    }

    /// This rank is about to sleep.
    pub fn sleeps(&self) {
        if let Some(balance) = &self.balance {
            balance.sleeps();
        }
    }

    /// Counts a poll. Returns true if enough polls in a row were empty for the caller to yield its core.
    #[inline]
    pub fn has_looked(&self, busy: bool) -> bool {
        let idle = if busy { 0 } else { self.idle.get() + 1 };
        let enough = idle >= self.policy.looks;
        self.idle.set(if enough { 0 } else { idle });
        enough
    }

    /// Returns what waits for the doorbell and descriptors at once, if the system supports it.
    pub fn descriptors(&self) -> Option<&DescriptorDoorbell> {
        let made = self
            .descriptors
            .get_or_init(|| DescriptorDoorbell::new().ok());
        made.as_ref()
    }

    #[inline]
    pub fn threads(&self) -> Option<Threads> {
        self.threads.get()
    }

    pub fn set_threads(&self, threads: Option<Threads>) {
        self.threads.set(threads);
    }

    /// Returns true if this process has slept since the last call.
    pub fn take_slept(&self) -> bool {
        self.slept.take()
    }

    pub fn has_slept(&self) {
        self.slept.set(true);
    }

    /// Lets other threads in.
    #[inline]
    pub fn relax(&self) {
        if let Some(relax) = self.relax.get() {
            relax();
        }
    }

    pub fn set_relax(&self, relax: Option<fn()>) {
        self.relax.set(relax);
    }

    /// A poll before a sleep begins now, the first of its wait if `is_new`.
    pub fn begins_check(&self, now_ns: u64, is_new: bool) {
        self.check_ns.set(now_ns);
        self.slept_waits
            .set(self.slept_waits.get() + u64::from(is_new));
    }

    /// Returns the number of waits that have slept, and when the latest poll before a sleep began.
    pub fn check(&self) -> (u64, u64) {
        (self.slept_waits.get(), self.check_ns.get())
    }

    /// Calls the function that checks whether waiting still makes sense.
    pub fn watch(&self) {
        if let Some(watch) = self.watch.get() {
            watch();
        }
    }

    /// As [`Waiting::watch`], for a program that polls in a loop instead of waiting: at most once per interval.
    pub fn watch_now_and_then(&self, now_ns: u64) {
        const OFTEN_NS: u64 = 10_000_000;
        if now_ns.saturating_sub(self.watched_ns.get()) >= OFTEN_NS {
            self.watched_ns.set(now_ns);
            self.watch();
        }
    }

    pub fn set_watch(&self, watch: Option<fn()>) {
        self.watch.set(watch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_after_a_long_yield_sleep_without_one_until_their_count_ends() {
        let fd = Node::create(1).unwrap();
        let node = Node::attach(&fd, 0).unwrap();
        let cores = Cores::of_this_process();
        let ranks = cores.usable + 1;
        let waiting = Waiting::of(&node, &cores, ranks).unwrap();
        let yields = || waiting.policy_of_next_wait().yields;
        assert_eq!(yields(), WaitPolicy::OVERSUBSCRIBED.yields);
        // A longer suspension, such as that of a whole virtual machine, has no longer consequences.
        for (millis, waits) in [(1, 500), (4, 2_000), (4_000, 2_000)] {
            waiting.meets_load(Yielded::micros(1_000 * millis));
            assert!(waiting.is_beside_load());
            for _ in 0..waits {
                assert_eq!(yields(), 0);
            }
            assert!(!waiting.is_beside_load());
            assert_eq!(yields(), WaitPolicy::OVERSUBSCRIBED.yields);
        }
    }
}
