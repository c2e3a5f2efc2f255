//! More waiting threads than cores: each polls for itself, and between two polls the others have the core and the lock.
//!
//! The thread that is waited for, or one whose message has arrived, mostly needs the core of a thread that polls without a result.
//! A yield is a switch to it, about a microsecond, where a wake-up of a sleeping follower costs both sides a system call more; and by the time the thread has the core again,
//! the others have advanced, so its poll mostly succeeds.
//! A thread whose polls stay empty for the yields of its policy becomes the leader or a follower; so in a long wait all but one sleep.
//!
//! Threads in between are counted as `yielding`. While there are any, followers need no leader: the last yielding thread becomes the leader, or calls one when it leaves.

use super::{GlobalLock, Relaxed};
use mpi_base::race_detectors;
use mpi_base::yield_now::{Yielded, timed_yield};
use mpi_core::engine::{Polled, ThreadStep};

/// The number of empty polls for which a crowd that has dispersed is remembered: its threads may be between two calls.
const MEMORY: u32 = 64;

impl GlobalLock {
    /// Returns true if this thread waits with more threads than there are cores, or did so a moment ago.
    ///
    /// Only the owner may call it.
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

    /// Waits one step in a crowd: after a poll without news, yields without the lock.
    pub(super) fn wait_in_crowd(&self, me: usize, polled: Polled) -> ThreadStep {
        if self.followers.load(Relaxed) > 0 {
            self.notify_followers(polled.busy, polled.slept);
        }
        match polled.busy {
            true => ThreadStep::Alone,
            false => ThreadStep::Yielded(self.step_aside(me)),
        }
    }

    fn step_aside(&self, me: usize) -> Yielded {
        let depth = self.depth.load(Relaxed);
        self.yielding
            .store(self.yielding.load(Relaxed) + 1, Relaxed);
        race_detectors::releasing(self);
        self.unlock();
        let took = timed_yield();
        self.take(me, depth);
        self.yielding
            .store(self.yielding.load(Relaxed) - 1, Relaxed);
        took
    }
}
