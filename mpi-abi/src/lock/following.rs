//! Leader and followers: one of the waiting threads polls the engine for all of them.
//!
//! After a burst of events the leader evaluates the conditions of the followers,
//! and releases those whose wait is complete. The others go on waiting.
//! A follower whose condition only it can evaluate (a collective operation, a store in shared memory)
//! is released after each burst, and polls.
//! Followers spin first and then sleep, like other waiters. Only sleepers cost a system call.
//!
//! Protocol: the leader sets `released` of a follower or clears `leader`.
//! The leader then reads `sleeping_followers`.
//! A follower increments `sleeping_followers` under `inside`,
//! and then reads `released` and `leader` again.
//! On each side a fence separates the two steps (SYNC POINT `lock.following`).
//! For the end of a `yielding` thread, see SYNC POINT `lock.yielding` in the loom models.
//! The releasing thread executes [`GlobalLock::release_fence`], the follower `sleeper_fence`.
//! A follower is in the list of followers ([`followers`](super::followers)) while it waits without the lock.

use super::followers::Follower;
use super::{GlobalLock, me};
use mpi_base::wait::{WaitPolicy, Waiter};
use mpi_core::engine::{Polled, ThreadStep};
use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Interval of a follower's own polls: an event in shared memory may arrive without a message.
const OWN_POLL: Duration = Duration::from_millis(1);

/// The interval for a follower whose condition the leader evaluates, and which therefore needs none.
const OWN_POLL_OF_MESSAGES: Duration = Duration::from_millis(100);

/// The wait policy of followers: they spin for about the duration of a wake-up.
const FOLLOWING: WaitPolicy = WaitPolicy {
    spins: 0,
    pauses: Duration::from_micros(20),
    yields: 0,
    nap: OWN_POLL,
    ..WaitPolicy::DEDICATED
};

/// Number of polls with events after which the leader notifies during a continuing burst.
const LONG_BURST: u32 = 64;

impl GlobalLock {
    /// Runs between two polls of a wait. Oversubscribed threads yield.
    /// Without a leader, the caller becomes the leader.
    /// Otherwise the caller waits until the leader has events or leaves.
    ///
    /// Only the owner of the lock may call this function, while no part of the state is borrowed.
    pub fn wait_step(&'static self, polled: Polled<'_>) -> ThreadStep {
        if self.is_reserved() {
            let others = [&self.yielding, &self.crowded_polls];
            if others.iter().all(|count| count.load(Relaxed) == 0) {
                // While the lock is reserved, there are no followers, so this thread need not lead.
                return ThreadStep::Alone;
            }
            if self.is_reservation_valid() && !self.is_wanted() {
                self.reservation.come_earlier();
            }
        }
        let me = me();
        if !self.holds(me) {
            return ThreadStep::Alone;
        }
        let crowded = self.is_oversubscribed();
        if crowded && polled.may_yield {
            return self.wait_in_crowd(me, polled);
        }
        let Polled {
            busy,
            slept,
            awaits,
            ..
        } = polled;
        let leader = self.leader.load(Relaxed);
        if leader == me || leader == 0 && self.yielding.load(Relaxed) == 0 {
            self.leader.store(me, Relaxed);
            if self.followers.load(Relaxed) > 0 {
                self.notify_followers(busy, slept);
            }
            return ThreadStep::Alone;
        }
        if busy || slept {
            self.news_polls
                .store(self.news_polls.load(Relaxed).max(1), Relaxed);
        }
        self.follow(me, crowded, &Follower::new(awaits))
    }

    /// Ends a call whose effects may complete waits of followers. The leader will notify them.
    /// Without a leader, one follower is woken to lead.
    #[cold]
    pub(super) fn notify_at_release(&self) {
        self.news_polls
            .store(self.news_polls.load(Relaxed).max(1), Relaxed);
        // SYNC POINT lock.following
        self.release_fence();
        let idle = !self.is_polled() && !self.leader_called.load(Relaxed);
        if idle && self.sleeping_followers.load(Relaxed) > 0 {
            let inside = self.lock();
            // If all followers have woken by timeout since the check, none is called.
            let called = self
                .following
                .all()
                .find(|other| other.sleeps.load(Relaxed));
            self.leader_called.store(called.is_some(), Relaxed);
            drop(inside);
            if let Some(called) = called {
                called.news.notify_one();
            }
        }
    }

    /// Returns true if a leader or a yielding thread polls, so that followers may sleep.
    fn is_polled(&self) -> bool {
        self.leader.load(Relaxed) != 0 || self.yielding.load(Relaxed) > 0
    }

    /// Releases followers if there were events and the burst is over.
    pub(super) fn notify_followers(&self, busy: bool, slept: bool) {
        let news_polls = self.news_polls.load(Relaxed) + u32::from(busy || slept);
        let notify = news_polls > 0 && (!busy || news_polls > LONG_BURST);
        self.news_polls
            .store(if notify { 0 } else { news_polls }, Relaxed);
        if notify && self.following.release_complete() {
            // SYNC POINT lock.following
            self.release_fence();
            if self.sleeping_followers.load(Relaxed) > 0 {
                drop(self.lock());
                for follower in self.following.all() {
                    if follower.is_released() && follower.sleeps.load(Relaxed) {
                        follower.news.notify_one();
                    }
                }
            }
        }
    }

    /// Waits without the lock until released, or until a leader is needed.
    /// If oversubscribed, the thread sleeps immediately, because other threads need the core.
    #[cold]
    fn follow(&'static self, me: usize, crowded: bool, follower: &Follower) -> ThreadStep {
        let waits = || !follower.is_released() && self.is_polled();
        let timed_out = Listed::run(self, me, follower, || {
            let mut waiter = Waiter::new(FOLLOWING);
            while !crowded && waits() && !waiter.is_tired() {
                waiter.pause_or(|_| false);
            }
            waits() && self.sleep_as_follower(follower, waits)
        });
        follower.resume_panic();
        match timed_out && follower.has_condition() {
            true => ThreadStep::TimedOut,
            false => ThreadStep::Followed,
        }
    }

    /// Sleeps while `waits` holds, at most until the follower's next own poll.
    /// Returns true if the sleep has lasted until then.
    fn sleep_as_follower(&self, follower: &Follower, waits: impl Fn() -> bool) -> bool {
        let begin = Instant::now();
        let mut inside = self.lock();
        follower.sleeps.store(true, Relaxed);
        self.sleeping_followers.fetch_add(1, Relaxed);
        // SYNC POINT lock.following
        self.sleeper_fence();
        let limit = match follower.has_condition() {
            true => OWN_POLL_OF_MESSAGES,
            false => OWN_POLL,
        };
        while waits() && begin.elapsed() < limit {
            let left = limit.saturating_sub(begin.elapsed());
            let woken = follower.news.wait_timeout(inside, left);
            (inside, _) = woken.unwrap_or_else(PoisonError::into_inner);
            // If the flag was set for this thread, it becomes the leader now.
            // If another thread leads by then, the cleared flag lets that thread call this one when it leaves.
            self.leader_called.store(false, Relaxed);
            if !waits() {
                break;
            }
            // SYNC POINT lock.following: either the leader sees the cleared flag, or this thread sees that it has left.
            self.sleeper_fence();
        }
        follower.sleeps.store(false, Relaxed);
        self.sleeping_followers.fetch_sub(1, Relaxed);
        drop(inside);
        begin.elapsed() >= limit
    }
}

/// A follower in the list, whose thread is outside of the lock.
///
/// The end acquires the lock at its former depth and removes the follower, also if the thread panics:
/// no pointer to the stack of its wait remains, and the guards of its call find the lock as they left it.
pub(super) struct Listed<'a> {
    lock: &'static GlobalLock,
    follower: &'a Follower,
    me: usize,
    depth: u32,
}

impl Listed<'_> {
    /// Runs `wait` without the lock, which the caller owns without a reservation, while the follower is in the list.
    pub(super) fn run<R>(
        lock: &'static GlobalLock,
        me: usize,
        follower: &Follower,
        wait: impl FnOnce() -> R,
    ) -> R {
        let depth = lock.depth.load(Relaxed);
        // The leader and the follower access the follower's words with atomic loads and stores.
        mpi_base::race_detectors::exclude(follower);
        lock.following.add(follower);
        lock.followers.fetch_add(1, Relaxed);
        lock.unlock();
        let _listed = Listed {
            lock,
            follower,
            me,
            depth,
        };
        wait()
    }
}

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        self.lock.take(self.me, self.depth);
        self.lock.following.remove(self.follower);
        self.lock.followers.fetch_sub(1, Relaxed);
    }
}

/// Returns for each follower whether its wait may be complete, and whether it has been released. The caller owns the lock.
#[cfg(test)]
pub(super) fn complete_and_released(lock: &GlobalLock) -> Vec<(bool, bool)> {
    let all = lock.following.all();
    all.map(|of| (of.may_be_complete(), of.is_released()))
        .collect()
}
