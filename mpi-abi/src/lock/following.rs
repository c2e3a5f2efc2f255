//! Leader and followers: of the threads that wait in the engine, one polls and notifies the others.
//!
//! The leader notifies at the end of a burst of news, because a follower that wakes takes the lock.
//! Followers wait for a notification as other waiters wait for messages: they spin first and then sleep. Only sleepers cost the leader a system call.
//!
//! Protocol: a notifying thread increments `bulletins`, or clears `leader`, and then reads `asleep`; a follower increments `asleep` under `inside`
//! and then reads both once more. [`Giant::order`] or its counterpart separates the two steps on each side.

use super::{Giant, me};
use mpi_base::wait::{WaitPolicy, Waiter};
use std::sync::PoisonError;
use std::sync::atomic::{Ordering, Ordering::Relaxed};
use std::time::Duration;

/// The event a follower waits for may arrive without a message, through shared memory alone; so it polls for itself at this interval.
const OWN_LOOK: Duration = Duration::from_millis(1);

/// The wait policy of followers: they spin about as long as a wake-up takes.
const FOLLOWING: WaitPolicy = WaitPolicy {
    spins: 0,
    pauses: Duration::from_micros(20),
    yields: 0,
    nap: OWN_LOOK,
    ..WaitPolicy::DEDICATED
};

/// Number of polls with news after which the leader notifies although more is arriving.
const LONG_BURST: u32 = 64;

impl Giant {
    /// Runs between two polls of a wait in the engine. Without another leader, makes the caller the leader and returns false; otherwise
    /// waits until the leader has news or has left, and returns true.
    /// `busy`: the caller's last poll may have found something for other threads, and more is likely to arrive at once.
    /// `slept`: something may have arrived while the caller slept.
    ///
    /// Only the owner may call it, and only while nothing is borrowed from the state.
    pub fn follow(&self, busy: bool, slept: bool) -> bool {
        if self.is_reserved() {
            // No second thread has ever called, so there is none to follow or to notify.
            return false;
        }
        let (me, leader) = (me(), self.leader.load(Relaxed));
        if !self.holds(me) {
            return false;
        }
        if leader == 0 || leader == me {
            self.leader.store(me, Relaxed);
            if self.followers.load(Relaxed) > 0 {
                self.lead(busy, slept);
            }
            return false;
        }
        if busy || slept {
            self.stirred
                .store(self.stirred.load(Relaxed).max(1), Relaxed);
        }
        self.follow_on(me);
        true
    }

    /// Ends a call whose effects followers may be waiting for: the leader will notify them; without a leader, one of them is woken to lead.
    #[cold]
    pub(super) fn leave_followers(&self) {
        self.stirred
            .store(self.stirred.load(Relaxed).max(1), Relaxed);
        self.order();
        let idle = self.leader.load(Relaxed) == 0 && !self.called.load(Relaxed);
        if idle && self.asleep.load(Relaxed) > 0 {
            let inside = self.lock();
            // It may have woken up for its own poll meanwhile.
            self.called.store(self.asleep.load(Relaxed) > 0, Relaxed);
            drop(inside);
            self.news.notify_one();
        }
    }

    /// Notifies the followers, if there is news and no more is arriving just now.
    fn lead(&self, busy: bool, slept: bool) {
        let stirred = self.stirred.load(Relaxed) + u32::from(busy || slept);
        let tell = stirred > 0 && (!busy || stirred > LONG_BURST);
        self.stirred.store(if tell { 0 } else { stirred }, Relaxed);
        if tell {
            let bulletins = self.bulletins.load(Relaxed).wrapping_add(1);
            self.bulletins.store(bulletins, Ordering::Release);
            self.order();
            if self.asleep.load(Relaxed) > 0 {
                drop(self.lock());
                self.news.notify_all();
            }
        }
    }

    #[cold]
    fn follow_on(&self, me: usize) {
        let depth = self.depth.load(Relaxed);
        // The leader publishes only while it holds the lock, which this thread still holds.
        let seen = self.bulletins.load(Relaxed);
        self.followers.fetch_add(1, Relaxed);
        mpi_base::race_detectors::releasing(self);
        self.give_back();
        let waits =
            || self.bulletins.load(Ordering::Acquire) == seen && self.leader.load(Relaxed) != 0;
        let mut waiter = Waiter::new(FOLLOWING);
        while waits() && !waiter.is_tired() {
            waiter.pause_or(|_| {});
        }
        if waits() {
            self.follow_asleep(waits);
        }
        self.take(me, depth);
        self.followers.fetch_sub(1, Relaxed);
    }

    /// Sleeps while `waits` holds, at most until its next own poll.
    fn follow_asleep(&self, waits: impl Fn() -> bool) {
        let inside = self.lock();
        self.asleep.fetch_add(1, Relaxed);
        self.order_for_all();
        let woken = self.news.wait_timeout_while(inside, OWN_LOOK, |()| waits());
        // A thread that was woken to lead and finds a leader may be woken again.
        self.called.store(false, Relaxed);
        self.asleep.fetch_sub(1, Relaxed);
        drop(woken.unwrap_or_else(PoisonError::into_inner));
    }
}
