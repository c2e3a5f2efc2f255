//! The wait state of a process: its policy, its load balancing, its doorbell, and the callbacks of the layers above.

use super::balance::Balance;
use mpi_base::cpu::Cores;
use mpi_base::descriptor_doorbell::DescriptorDoorbell;
use mpi_base::node::{Node, NodeError};
use mpi_base::occupancy::Occupancy;
use mpi_base::wait::WaitPolicy;
use std::cell::{Cell, OnceCell};

/// How several threads of a process wait in one engine: one thread polls for all, and the others follow it.
#[derive(Clone, Copy, Debug)]
pub struct Threads {
    /// If another thread polls already, waits until that one has news or has left, and returns true; otherwise the caller becomes the polling thread.
    /// The arguments report whether followers may have news: the caller's poll was `busy`, or it `slept` before.
    pub follow: fn(busy: bool, slept: bool) -> bool,
    /// Returns true if a thread waits to begin a call, so that no thread may sleep.
    pub wanted: fn() -> bool,
}

/// The number of waits that sleep without a yield after a yield during which another process computed.
///
/// The yield after them tests whether that process still runs. It takes up to 4 ms, which is 2 us for each of these waits.
const BESIDE_LOAD: u32 = 2000;

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
}

impl Waiting {
    /// Creates the wait state of a process of a node with `ranks` ranks and these usable cores.
    pub fn of(node: &Node, cores: &Cores, ranks: usize) -> Result<Waiting, NodeError> {
        let occupancy = Occupancy::of(cores.usable, cores.shared_by(ranks));
        let oversubscribed = occupancy == Occupancy::Oversubscribed;
        if oversubscribed {
            // This process will sleep often, and a fence in every process for each sleep would cost more than one for each message.
            node.my_inbox().bell().ask_for_fences();
        }
        // If a CPU quota is the limit, cores are idle; spreading ranks over them would only use up the quota sooner.
        let spreads = oversubscribed && !cores.limited_by_quota();
        let balance = spreads.then(|| Balance::of(node));
        Ok(Waiting {
            policy: WaitPolicy::of(occupancy),
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
    #[cold]
    pub fn meets_load(&self) {
        self.beside_load.set(BESIDE_LOAD);
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
        assert_eq!(waiting.policy_of_next_wait(), WaitPolicy::OVERSUBSCRIBED);
        waiting.meets_load();
        assert!(waiting.is_beside_load());
        for _ in 0..BESIDE_LOAD {
            assert_eq!(waiting.policy_of_next_wait().yields, 0);
        }
        assert!(!waiting.is_beside_load());
        assert_eq!(waiting.policy_of_next_wait(), WaitPolicy::OVERSUBSCRIBED);
    }
}
