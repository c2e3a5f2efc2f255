//! Leader and followers: one of the waiting threads polls the engine and notifies the others.
//!
//! The leader notifies at the end of a burst of events, since each woken follower takes the lock.
//! Followers spin first and then sleep, like other waiters. Only sleepers cost a system call.
//!
//! Protocol: a notifying thread increments `notifications` or clears `leader`.
//! The notifying thread then reads `sleeping_followers`.
//! A follower increments `sleeping_followers` under `inside`,
//! and then reads `notifications` and `leader` again.
//! For the end of a `yielding` thread, see SYNC POINT `lock.yielding` in the loom models.
//! On each side a fence separates the two steps.
//! The notifying thread executes [`GlobalLock::release_fence`], the follower `sleeper_fence`.

use super::{GlobalLock, me};
use mpi_base::wait::{WaitPolicy, Waiter};
use mpi_core::engine::{Polled, ThreadStep};
use std::sync::PoisonError;
use std::sync::atomic::{Ordering, Ordering::Relaxed};
use std::time::Duration;

/// Interval of a follower's own polls: an event in shared memory may arrive without a message.
const OWN_POLL: Duration = Duration::from_millis(1);

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
    pub fn wait_step(&'static self, polled: Polled) -> ThreadStep {
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
        let Polled { busy, slept, .. } = polled;
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
        self.follow(me, crowded);
        ThreadStep::Followed
    }

    /// Ends a call whose effects may complete waits of followers. The leader will notify them.
    /// Without a leader, one follower is woken to lead.
    #[cold]
    pub(super) fn notify_at_release(&self) {
        self.news_polls
            .store(self.news_polls.load(Relaxed).max(1), Relaxed);
        self.release_fence();
        let idle = !self.is_polled() && !self.leader_called.load(Relaxed);
        if idle && self.sleeping_followers.load(Relaxed) > 0 {
            let inside = self.lock();
            // If all followers have woken by timeout since the check, none is called.
            self.leader_called
                .store(self.sleeping_followers.load(Relaxed) > 0, Relaxed);
            drop(inside);
            self.news.notify_one();
        }
    }

    /// Returns true if a leader or a yielding thread polls, so that followers may sleep.
    fn is_polled(&self) -> bool {
        self.leader.load(Relaxed) != 0 || self.yielding.load(Relaxed) > 0
    }

    /// Notifies the followers if there were events and the burst is over.
    pub(super) fn notify_followers(&self, busy: bool, slept: bool) {
        let news_polls = self.news_polls.load(Relaxed) + u32::from(busy || slept);
        let notify = news_polls > 0 && (!busy || news_polls > LONG_BURST);
        self.news_polls
            .store(if notify { 0 } else { news_polls }, Relaxed);
        if notify {
            let notifications = self.notifications.load(Relaxed).wrapping_add(1);
            self.notifications.store(notifications, Ordering::Release);
            self.release_fence();
            if self.sleeping_followers.load(Relaxed) > 0 {
                drop(self.lock());
                self.news.notify_all();
            }
        }
    }

    /// Waits without the lock for events, or until a leader is needed.
    /// If oversubscribed, the thread sleeps immediately, because other threads need the core.
    #[cold]
    fn follow(&'static self, me: usize, crowded: bool) {
        let depth = self.depth.load(Relaxed);
        // The leader notifies only while it holds the lock, which this thread still holds.
        let seen = self.notifications.load(Relaxed);
        self.followers.fetch_add(1, Relaxed);
        mpi_base::race_detectors::releasing(self);
        self.unlock();
        let waits = || self.notifications.load(Ordering::Acquire) == seen && self.is_polled();
        let mut waiter = Waiter::new(FOLLOWING);
        while !crowded && waits() && !waiter.is_tired() {
            waiter.pause_or(|_| {});
        }
        if waits() {
            self.sleep_as_follower(waits);
        }
        self.take(me, depth);
        self.followers.fetch_sub(1, Relaxed);
    }

    /// Sleeps while `waits` holds, at most until the follower's next own poll.
    fn sleep_as_follower(&self, waits: impl Fn() -> bool) {
        let inside = self.lock();
        self.sleeping_followers.fetch_add(1, Relaxed);
        self.sleeper_fence();
        let woken = self.news.wait_timeout_while(inside, OWN_POLL, |()| waits());
        // If the flag was set for this thread, it becomes the leader now.
        // If a leader exists by then, the cleared flag allows another wake-up later.
        self.leader_called.store(false, Relaxed);
        self.sleeping_followers.fetch_sub(1, Relaxed);
        drop(woken.unwrap_or_else(PoisonError::into_inner));
    }
}
