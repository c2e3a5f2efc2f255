//! Waiting with more threads than cores: each thread polls, and yields core and lock between polls.
//!
//! An empty poll mostly means that another thread needs this core to make the awaited event happen.
//! A yield is a switch to that thread, about a microsecond.
//! Waking a sleeping follower costs both threads one more system call.
//! When the yielding thread gets the core again, the other threads have advanced.
//! So its next poll mostly succeeds.
//! A thread that has yielded as often as its wait policy allows, without an event,
//! becomes the leader or a follower.
//! So in a long wait all threads but one sleep.
//!
//! Threads that yield are counted in `yielding`.
//! Before it yields, a thread migrates to a core of its rank ([`home`](super::home)).
//! While the count is not 0, followers need no leader.
//! The last yielding thread becomes the leader, or wakes a follower to lead when it leaves.

use super::{GlobalLock, Relaxed};
use mpi_base::clock::now_ns;
use mpi_base::yield_now::{Yielded, timed_yield};
use mpi_core::engine::{Polled, ThreadStep};

/// Number of empty polls after which the process no longer counts as oversubscribed.
/// Until then, the threads that no longer wait may only be between two of their MPI calls.
const MEMORY: u32 = 64;

impl GlobalLock {
    /// Returns true if more threads than cores wait, now or in the last [`MEMORY`] empty polls.
    ///
    /// Only the owner of the lock may call this function.
    pub(super) fn is_oversubscribed(&self) -> bool {
        let counts = [&self.waiters, &self.followers, &self.yielding];
        let others: u32 = counts.iter().map(|count| count.load(Relaxed)).sum();
        if others >= self.cores.load(Relaxed) {
            self.crowded_polls.store(MEMORY, Relaxed);
            return true;
        }
        let left = self.crowded_polls.load(Relaxed);
        self.crowded_polls.store(left.saturating_sub(1), Relaxed);
        left > 0
    }

    /// Waits one step while oversubscribed: yields without the lock after an empty poll.
    pub(super) fn wait_in_crowd(&'static self, me: usize, polled: Polled<'_>) -> ThreadStep {
        if self.followers.load(Relaxed) > 0 {
            self.notify_followers(polled.busy, polled.slept);
        }
        match polled.busy {
            true => ThreadStep::Alone,
            false => ThreadStep::Yielded(self.step_aside(me)),
        }
    }

    fn step_aside(&'static self, me: usize) -> Yielded {
        let depth = self.depth.load(Relaxed);
        self.yielding
            .store(self.yielding.load(Relaxed) + 1, Relaxed);
        self.unlock();
        self.home.enter();
        let took = timed_yield();
        self.take(me, depth);
        if took > Yielded::LONG {
            self.home.meets_load(now_ns());
        }
        self.yielding
            .store(self.yielding.load(Relaxed) - 1, Relaxed);
        took
    }
}
