//! Threads that wait in the engine together: one looks, the others are told.
//!
//! The leader tells its news when a burst of them is over, because waking a thread costs more than a hundred messages.

use super::{Giant, me};
use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// What a follower waits for may come without a message, through shared memory alone; so it looks for itself now and then.
const OWN_LOOK: Duration = Duration::from_millis(1);

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
            // There has never been anybody to follow, or to tell.
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
        if self.leader.load(Relaxed) == 0 && !self.called.load(Relaxed) {
            self.called.store(true, Relaxed);
            drop(self.lock());
            self.news.notify_one();
        }
    }

    /// Tells the followers, if there is news and no more is coming just now.
    fn lead(&self, busy: bool, slept: bool) {
        let stirred = self.stirred.load(Relaxed) + u32::from(busy || slept);
        let tell = stirred > 0 && (!busy || stirred > LONG_BURST);
        self.stirred.store(if tell { 0 } else { stirred }, Relaxed);
        if tell {
            let mut bulletins = self.lock();
            *bulletins = bulletins.wrapping_add(1);
            drop(bulletins);
            self.news.notify_all();
        }
    }

    #[cold]
    fn follow_on(&self, me: usize) {
        let depth = self.depth.load(Relaxed);
        self.followers.fetch_add(1, Relaxed);
        let mut inside = self.lock();
        let seen = *inside;
        // The leader cannot publish before it has the lock, and not before we wait, since it needs `inside` for that.
        self.owner.store(0, std::sync::atomic::Ordering::Release);
        self.order();
        if self.sleeper.swap(false, Relaxed) {
            self.free.notify_one();
        }
        while *inside == seen && self.leader.load(Relaxed) != 0 {
            let (again, wait) = self
                .news
                .wait_timeout(inside, OWN_LOOK)
                .unwrap_or_else(PoisonError::into_inner);
            inside = again;
            // Whoever is called to lead and finds a leader may be called again.
            self.called.store(false, Relaxed);
            if wait.timed_out() {
                break;
            }
        }
        drop(inside);
        self.take(me, depth);
        self.followers.fetch_sub(1, Relaxed);
    }
}
