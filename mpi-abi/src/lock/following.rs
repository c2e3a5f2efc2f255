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
//! For the end of a `yielding` thread, see SYNC POINT `lock.yielding` in the loom models.
//! On each side a fence separates the two steps.
//! The releasing thread executes [`GlobalLock::release_fence`], the follower `sleeper_fence`.
//! A follower is in the list [`Following`] from before it releases the lock until it has acquired it again.
//! Only the owner of the lock accesses the list and calls the conditions.

use super::{GlobalLock, me};
use mpi_base::wait::{WaitPolicy, Waiter};
use mpi_core::engine::{Condition, Polled, ThreadStep};
use std::cell::UnsafeCell;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering, Ordering::Relaxed};
use std::sync::{Condvar, PoisonError};
use std::time::Duration;

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

/// A thread that waits without the lock.
struct Follower {
    /// The condition of its wait, if the leader may evaluate it.
    awaits: Option<NonNull<Condition<'static>>>,
    /// True if the thread should poll.
    released: AtomicBool,
    /// True while the thread sleeps. Written under `inside`.
    sleeps: AtomicBool,
    news: Condvar,
}

/// The threads that follow.
pub(super) struct Following(UnsafeCell<Vec<NonNull<Follower>>>);

// SAFETY: only the owner of the lock accesses the list and calls the conditions in it:
// `wait_step`, `release` and `follow` call the functions below under the lock.
unsafe impl Sync for Following {}

impl std::fmt::Debug for Following {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Following").finish_non_exhaustive()
    }
}

impl Following {
    pub(super) const fn new() -> Self {
        Following(UnsafeCell::new(Vec::new()))
    }

    /// Returns the follower at an index. The caller owns the lock.
    fn at(&self, index: usize) -> Option<&Follower> {
        // SAFETY: the caller owns the lock, so no other thread changes the list.
        let follower = unsafe { &*self.0.get() }.get(index).copied();
        // SAFETY: `follow` has the value on its stack. It adds the value before it releases the lock,
        // and removes it after it has acquired the lock again, which the caller owns.
        follower.map(|follower| unsafe { &*follower.as_ptr() })
    }

    /// Returns all followers. The caller owns the lock.
    fn all(&self) -> impl Iterator<Item = &Follower> {
        (0..).map_while(|index| self.at(index))
    }

    /// Adds a follower. The caller owns the lock.
    fn add(&self, follower: &Follower) {
        // SAFETY: the caller owns the lock, and no reference to the list exists.
        unsafe { &mut *self.0.get() }.push(NonNull::from(follower));
    }

    /// Releases the followers whose waits may be complete. Returns true if there are any. The caller owns the lock.
    fn release_complete(&self) -> bool {
        let mut any = false;
        for follower in self.all() {
            if !follower.released.load(Relaxed) && follower.may_be_complete() {
                follower.released.store(true, Ordering::Release);
                any = true;
            }
        }
        any
    }

    /// Removes a follower. The caller owns the lock.
    fn remove(&self, follower: &Follower) {
        // SAFETY: the caller owns the lock, and no reference to the list exists.
        unsafe { &mut *self.0.get() }.retain(|other| *other != NonNull::from(follower));
    }
}

impl Follower {
    fn new(awaits: Option<&mut Condition<'_>>) -> Self {
        let forget = |condition: &mut Condition<'_>| {
            // SAFETY: only the type of the pointer changes. It is used only while the thread
            // is in `follow`, so the condition and what it borrows exist.
            unsafe {
                std::mem::transmute::<NonNull<Condition<'_>>, NonNull<Condition<'static>>>(
                    NonNull::from(condition),
                )
            }
        };
        Follower {
            awaits: awaits.map(forget),
            released: AtomicBool::new(false),
            sleeps: AtomicBool::new(false),
            news: Condvar::new(),
        }
    }

    /// Returns true if the thread must poll, because its wait may be complete. The caller owns the lock.
    fn may_be_complete(&self) -> bool {
        self.awaits.is_none_or(|condition| {
            // SAFETY: the follower's thread is in `follow`, between `add` and `remove`, and does not use the condition.
            // The caller owns the lock, so no other thread calls it at the same time.
            // Its result does not depend on the thread that calls it (`Engine::wait_for_messages`).
            unsafe { (*condition.as_ptr())() }
        })
    }

    fn own_poll(&self) -> Duration {
        match self.awaits {
            None => OWN_POLL,
            Some(_) => OWN_POLL_OF_MESSAGES,
        }
    }
}

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
        self.follow(me, crowded, Follower::new(awaits));
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
            self.release_fence();
            if self.sleeping_followers.load(Relaxed) > 0 {
                drop(self.lock());
                for follower in self.following.all() {
                    if follower.released.load(Relaxed) && follower.sleeps.load(Relaxed) {
                        follower.news.notify_one();
                    }
                }
            }
        }
    }

    /// Waits without the lock until released, or until a leader is needed.
    /// If oversubscribed, the thread sleeps immediately, because other threads need the core.
    #[cold]
    fn follow(&'static self, me: usize, crowded: bool, follower: Follower) {
        let depth = self.depth.load(Relaxed);
        self.followers.fetch_add(1, Relaxed);
        self.following.add(&follower);
        mpi_base::race_detectors::releasing(self);
        self.unlock();
        let waits = || !follower.released.load(Ordering::Acquire) && self.is_polled();
        let mut waiter = Waiter::new(FOLLOWING);
        while !crowded && waits() && !waiter.is_tired() {
            waiter.pause_or(|_| {});
        }
        if waits() {
            self.sleep_as_follower(&follower, waits);
        }
        self.take(me, depth);
        self.following.remove(&follower);
        self.followers.fetch_sub(1, Relaxed);
    }

    /// Sleeps while `waits` holds, at most until the follower's next own poll.
    fn sleep_as_follower(&self, follower: &Follower, waits: impl Fn() -> bool) {
        let inside = self.lock();
        follower.sleeps.store(true, Relaxed);
        self.sleeping_followers.fetch_add(1, Relaxed);
        self.sleeper_fence();
        let limit = follower.own_poll();
        let woken = follower
            .news
            .wait_timeout_while(inside, limit, |()| waits());
        // If the flag was set for this thread, it becomes the leader now.
        // If a leader exists by then, the cleared flag allows another wake-up later.
        self.leader_called.store(false, Relaxed);
        follower.sleeps.store(false, Relaxed);
        self.sleeping_followers.fetch_sub(1, Relaxed);
        drop(woken.unwrap_or_else(PoisonError::into_inner));
    }
}

/// Returns for each follower whether its wait may be complete, and whether it has been released. The caller owns the lock.
#[cfg(test)]
pub(super) fn complete_and_released(lock: &GlobalLock) -> Vec<(bool, bool)> {
    let all = lock.following.all();
    all.map(|of| (of.may_be_complete(), of.released.load(Relaxed)))
        .collect()
}
