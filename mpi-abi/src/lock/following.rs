//! Threads that wait in the engine together: one looks, the others are told.
//!
//! The leader tells its news when a burst of them is over, because a follower that comes back takes the lock.
//! Followers look for news as other waiters look for messages, first awake and then asleep; only sleepers cost the leader a call of the system.
//!
//! Protocol: a thread that has news counts `bulletins` up, or clears `leader`, and then looks at `asleep`; a follower counts `asleep` up under `inside`
//! and then looks at both once more. Between the two steps of each stands [`Giant::order`] or its counterpart.

use super::{Giant, me};
use mpi_base::wait::{WaitPolicy, Waiter};
use std::sync::PoisonError;
use std::sync::atomic::{Ordering, Ordering::Relaxed};
use std::time::Duration;

/// What a follower waits for may come without a message, through shared memory alone; so it looks for itself now and then.
const OWN_LOOK: Duration = Duration::from_millis(1);

/// How followers wait: awake about as long as waking one takes.
const FOLLOWING: WaitPolicy = WaitPolicy {
    spins: 0,
    pauses: Duration::from_micros(20),
    yields: 0,
    nap: OWN_LOOK,
    ..WaitPolicy::ROOMY
};

/// Turns with news after which the leader tells them although more are coming.
const LONG_BURST: u32 = 64;

impl Giant {
    /// Between two looks of a wait in the engine: makes the caller the leader and answers no, or, if there is one, waits until that one
    /// has news or has gone, and answers yes.
    /// The caller's last look may have found something for others, and is likely to find more at once, if it was `busy`;
    /// so may something have come while it `slept`.
    ///
    /// Only the owner calls it, and only where nothing is borrowed from the state.
    pub fn follow(&self, busy: bool, slept: bool) -> bool {
        if self.is_reserved() {
            // There has never been a thread to follow, or to tell.
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

    /// What this call did may be what a follower waits for: the leader will tell, and if there is none, one of them has to lead.
    #[cold]
    pub(super) fn leave_followers(&self) {
        self.stirred
            .store(self.stirred.load(Relaxed).max(1), Relaxed);
        self.order();
        let idle = self.leader.load(Relaxed) == 0 && !self.called.load(Relaxed);
        if idle && self.asleep.load(Relaxed) > 0 {
            let inside = self.lock();
            // He may have looked for himself meanwhile.
            self.called.store(self.asleep.load(Relaxed) > 0, Relaxed);
            drop(inside);
            self.news.notify_one();
        }
    }

    /// Tells the followers, if there is news and no more is coming just now.
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
        // The leader publishes only with the lock, which is still ours.
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

    /// Sleeps as long as it `waits`, until the next look of its own at most.
    fn follow_asleep(&self, waits: impl Fn() -> bool) {
        let inside = self.lock();
        self.asleep.fetch_add(1, Relaxed);
        self.order_for_all();
        let woken = self.news.wait_timeout_while(inside, OWN_LOOK, |()| waits());
        // A thread that is called to lead and finds a leader may be called again.
        self.called.store(false, Relaxed);
        self.asleep.fetch_sub(1, Relaxed);
        drop(woken.unwrap_or_else(PoisonError::into_inner));
    }
}
