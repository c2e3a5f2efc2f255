//! The one lock of the library, for `MPI_THREAD_MULTIPLE`.
//!
//! Below that level nobody takes it: asking whether to is one relaxed load.
//! It is re-entrant, because a program's callback may call MPI again, and a thread that waits in the engine lets the others in
//! between two looks ([`Giant::relax`]).
//! A lock that nobody else wants is taken by one atomic operation and given back by one.
//!
//! Of several threads that wait in the engine one looks, the leader, and it alone may sleep while it holds the lock;
//! the others follow it without the lock until it has news or has gone ([`Giant::follow`]).
//! The leader tells its news when a burst of them is over, because waking a thread costs more than a hundred messages.
//! A thread that comes and finds the lock taken says so and rings the process's bell, so that a sleeping leader makes way.
//!
//! Protocol: `owner` is taken from 0 by compare-and-swap (Acquire) and given back by a swap (Release), which also tells the one that gives back
//! whether somebody sleeps for it ([`SLEEPER`]); whoever goes to sleep sets that bit under `inside`, and whoever finds it wakes one under `inside`, so no waking is lost.
//! `depth`, `turns`, `unheeded`, `leader` and `stirred` are the owner's to write, and so is `called` but for a follower that wakes;
//! followers read `leader` under `inside`, where whoever changes it for them has been before he wakes them.
//! `wanting` is counted up before the bell is rung and read by the leader between saying that it sleeps and sleeping.

use mpi_base::inbox::Inbox;
use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering, Ordering::Relaxed,
};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What a follower waits for may come without a message, through shared memory alone; so it looks for itself now and then.
const OWN_LOOK: Duration = Duration::from_millis(1);

/// In `owner`: somebody sleeps until the lock is given back.
const SLEEPER: usize = 1;

/// How long a thread looks whether the lock is free before it gives its core away: about as long as a short call takes.
const SPINS: u32 = 32;

/// How often it gives its core away before it sleeps.
const YIELDS: u32 = 4;

/// Turns with news after which the leader tells them although more are coming.
const LONG_BURST: u32 = 64;

/// How often a thread makes way in vain before it stays away for a while.
const PATIENCE: u32 = 32;

/// And for how long.
const MAKING_WAY: Duration = Duration::from_micros(50);

/// A re-entrant lock with hand-over.
#[derive(Debug)]
pub struct Giant {
    /// The thread that holds the lock, 0 for none, and [`SLEEPER`].
    owner: AtomicUsize,
    /// How often the owner has taken it.
    depth: AtomicU32,
    /// Counts acquisitions, so that a thread that stepped aside knows that another had its turn.
    turns: AtomicU32,
    /// How often making way was in vain.
    unheeded: AtomicU32,
    /// How many threads wait for the lock.
    wanting: AtomicU32,
    /// The thread that looks for all that wait in the engine, 0 for none; and how many follow it.
    leader: AtomicUsize,
    followers: AtomicU32,
    /// Turns with news of which the followers have not been told.
    stirred: AtomicU32,
    /// Whether a follower has been woken to lead.
    called: AtomicBool,
    /// Counts what may be news to followers.
    inside: Mutex<u64>,
    /// Tells a sleeper that the lock is free.
    free: Condvar,
    /// Tells followers of news.
    news: Condvar,
    /// Whose bell wakes the owner; null while there is none.
    inbox: AtomicPtr<Inbox>,
}

thread_local! {
    /// Its address tells threads apart; it is even.
    static MARK: u64 = const { 0 };
}

/// A number that no other thread of the process has.
pub fn me() -> usize {
    MARK.with(|m| std::ptr::from_ref(m).addr())
}

impl Giant {
    pub const fn new() -> Self {
        Giant {
            owner: AtomicUsize::new(0),
            depth: AtomicU32::new(0),
            turns: AtomicU32::new(0),
            unheeded: AtomicU32::new(0),
            wanting: AtomicU32::new(0),
            leader: AtomicUsize::new(0),
            followers: AtomicU32::new(0),
            stirred: AtomicU32::new(0),
            called: AtomicBool::new(false),
            inside: Mutex::new(0),
            free: Condvar::new(),
            news: Condvar::new(),
            inbox: AtomicPtr::new(std::ptr::null_mut()),
        }
    }

    /// From now on whoever finds the lock taken rings this bell.
    pub fn ring_at(&self, inbox: &'static Inbox) {
        let inbox = std::ptr::from_ref(inbox).cast_mut();
        self.inbox.store(inbox, Ordering::Release);
    }

    /// Whether a thread waits for the lock.
    #[inline]
    pub fn is_wanted(&self) -> bool {
        self.wanting.load(Ordering::SeqCst) > 0
    }

    /// Takes the lock, or takes it once more.
    #[inline]
    pub fn acquire(&self) {
        let me = me();
        if self.owner.load(Relaxed) & !SLEEPER == me {
            self.depth.store(self.depth.load(Relaxed) + 1, Relaxed);
        } else {
            self.take(me, 1);
        }
    }

    /// Gives the lock back, or gives one taking back.
    #[inline]
    pub fn release(&self) {
        let depth = self.depth.load(Relaxed) - 1;
        self.depth.store(depth, Relaxed);
        if depth > 0 {
            return;
        }
        let leader = self.leader.load(Relaxed);
        if leader != 0 && leader == me() {
            self.leader.store(0, Relaxed);
        }
        if self.followers.load(Relaxed) > 0 {
            self.leave_followers();
        }
        self.give_back();
    }

    /// What this call did may be what a follower waits for: the leader will tell, and if there is none, one of them has to lead.
    #[cold]
    fn leave_followers(&self) {
        self.stirred
            .store(self.stirred.load(Relaxed).max(1), Relaxed);
        if self.leader.load(Relaxed) == 0 && !self.called.load(Relaxed) {
            self.called.store(true, Relaxed);
            drop(self.lock());
            self.news.notify_one();
        }
    }

    #[inline]
    fn give_back(&self) {
        if self.owner.swap(0, Ordering::Release) & SLEEPER != 0 {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        // A sleeper has set the bit under `inside` and is on its condition by the time we get it.
        drop(self.lock());
        self.free.notify_one();
    }

    /// Between two looks of a wait in the engine: makes the caller the leader and answers no, or, if there is one, waits until that one
    /// has news or has gone, and answers yes.
    /// The caller's last look may have found something for others, and is likely to find more at once, if it was `busy`;
    /// so may something have come while it `slept`.
    ///
    /// Only the owner calls it, and only where nothing is borrowed from the state.
    pub fn follow(&self, busy: bool, slept: bool) -> bool {
        let (me, leader) = (me(), self.leader.load(Relaxed));
        if self.owner.load(Relaxed) & !SLEEPER != me {
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
        if self.owner.swap(0, Ordering::Release) & SLEEPER != 0 {
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

    /// Lets other threads have a turn, if any is waiting; returns whether one was.
    ///
    /// Only the owner calls it, and only where nothing is borrowed from the state.
    #[inline]
    pub fn relax(&self) -> bool {
        self.is_wanted() && self.make_way()
    }

    #[cold]
    fn make_way(&self) -> bool {
        let me = me();
        if self.owner.load(Relaxed) & !SLEEPER != me {
            return false;
        }
        let (depth, turn) = (self.depth.load(Relaxed), self.turns.load(Relaxed));
        let unheeded = self.unheeded.load(Relaxed);
        self.give_back();
        let had_turn = || self.turns.load(Relaxed) != turn;
        let mut spins = 0;
        while !had_turn() && spins < SPINS {
            std::hint::spin_loop();
            spins += 1;
        }
        if !had_turn() {
            // Whoever wants it may need this core.
            std::thread::yield_now();
        }
        if !had_turn() && unheeded >= PATIENCE {
            // Whoever wants it is asleep, or kept away by the scheduler.
            std::thread::sleep(MAKING_WAY);
        }
        let heeded = had_turn();
        self.take(me, depth);
        let unheeded = if heeded { 0 } else { unheeded + 1 };
        self.unheeded.store(unheeded, Relaxed);
        true
    }

    /// Takes the lock, which is not ours.
    #[inline]
    fn take(&self, me: usize, depth: u32) {
        if !self.try_take(me) {
            self.wait_for_it(me);
        }
        self.depth.store(depth, Relaxed);
        self.turns
            .store(self.turns.load(Relaxed).wrapping_add(1), Relaxed);
    }

    #[inline]
    fn try_take(&self, as_owner: usize) -> bool {
        self.owner
            .compare_exchange(0, as_owner, Ordering::Acquire, Relaxed)
            .is_ok()
    }

    #[cold]
    fn wait_for_it(&self, me: usize) {
        self.wanting.fetch_add(1, Ordering::SeqCst);
        // SAFETY: null, or an inbox that `ring_at` was given for the rest of the process.
        if let Some(inbox) = unsafe { self.inbox.load(Ordering::Acquire).as_ref() } {
            inbox.bell().ring();
        }
        let mut as_owner = me;
        while !self.spin(as_owner) {
            self.sleep();
            // Whoever woke us has forgotten the other sleepers; they are to be woken after us.
            as_owner = me | SLEEPER;
        }
        self.wanting.fetch_sub(1, Ordering::SeqCst);
    }

    /// Looks for a moment whether the lock becomes free, and takes it.
    fn spin(&self, as_owner: usize) -> bool {
        for _ in 0..YIELDS {
            for _ in 0..SPINS {
                if self.owner.load(Relaxed) == 0 && self.try_take(as_owner) {
                    return true;
                }
                std::hint::spin_loop();
            }
            std::thread::yield_now();
        }
        false
    }

    /// Sleeps until the lock has been given back, unless it is free.
    fn sleep(&self) {
        let inside = self.lock();
        loop {
            let held = self.owner.load(Relaxed);
            if held == 0 {
                return;
            }
            let marked = held & SLEEPER != 0
                || self
                    .owner
                    .compare_exchange(held, held | SLEEPER, Relaxed, Relaxed)
                    .is_ok();
            if marked {
                let woken = self.free.wait(inside);
                return drop(woken.unwrap_or_else(PoisonError::into_inner));
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, u64> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Giant {
    fn default() -> Self {
        Giant::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

    #[test]
    fn a_thread_may_take_it_again_and_gives_it_back_as_often() {
        let giant = Giant::new();
        giant.acquire();
        giant.acquire();
        giant.release();
        assert_ne!(giant.owner.load(Relaxed), 0);
        giant.release();
        assert_eq!(giant.owner.load(Relaxed), 0);
    }

    #[test]
    fn only_one_thread_is_inside() {
        let (giant, inside) = (Arc::new(Giant::new()), Arc::new(AtomicU32::new(0)));
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let (giant, inside) = (giant.clone(), inside.clone());
                std::thread::spawn(move || {
                    for _ in 0..200 {
                        giant.acquire();
                        assert_eq!(inside.fetch_add(1, Relaxed), 0);
                        inside.fetch_sub(1, Relaxed);
                        giant.relax();
                        giant.release();
                    }
                })
            })
            .collect();
        for thread in threads {
            assert!(thread.join().is_ok());
        }
    }

    #[test]
    fn threads_that_come_wait_follow_and_go_all_get_their_turns() {
        const THREADS: u32 = 6;
        let (giant, total) = (Arc::new(Giant::new()), Arc::new(AtomicU32::new(0)));
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let (giant, total) = (giant.clone(), total.clone());
                std::thread::spawn(move || {
                    for round in 0..300 {
                        giant.acquire();
                        // Not one operation: only the lock keeps it right.
                        let seen = total.load(Relaxed);
                        if (round + thread) % 3 == 0 {
                            giant.acquire();
                            giant.follow(round % 2 == 0, false);
                            giant.release();
                            giant.relax();
                            total.store(total.load(Relaxed) + 1, Relaxed);
                        } else {
                            total.store(seen + 1, Relaxed);
                        }
                        giant.release();
                        if (round + thread) % 7 == 0 {
                            std::thread::yield_now();
                        }
                    }
                })
            })
            .collect();
        for thread in threads {
            assert!(thread.join().is_ok());
        }
        assert_eq!(total.load(Relaxed), THREADS * 300);
        assert_eq!(giant.owner.load(Relaxed) & !SLEEPER, 0);
        assert_eq!(
            (giant.wanting.load(Relaxed), giant.followers.load(Relaxed)),
            (0, 0)
        );
    }

    #[test]
    fn followers_wait_outside_until_the_leader_has_news_or_goes() {
        let (giant, done) = (Arc::new(Giant::new()), Arc::new(AtomicBool::new(false)));
        giant.acquire();
        assert!(!giant.follow(false, false), "the first to wait leads");
        let other = {
            let (giant, done) = (giant.clone(), done.clone());
            std::thread::spawn(move || {
                giant.acquire();
                let mut followed = 0;
                while !done.load(Relaxed) {
                    followed += u32::from(giant.follow(false, false));
                    giant.relax();
                }
                giant.release();
                followed
            })
        };
        while giant.followers.load(Relaxed) == 0 {
            giant.relax();
            std::thread::yield_now();
        }
        done.store(true, Relaxed);
        assert!(!giant.follow(true, false), "the leader stays the leader");
        giant.release();
        assert!(other.join().is_ok_and(|followed| followed > 0));
        assert_eq!(
            (giant.leader.load(Relaxed), giant.followers.load(Relaxed)),
            (0, 0)
        );
    }

    #[test]
    fn a_waiting_thread_lets_the_one_in_that_it_waits_for() {
        let (giant, done) = (Arc::new(Giant::new()), Arc::new(AtomicBool::new(false)));
        giant.acquire();
        giant.acquire();
        let other = {
            let (giant, done) = (giant.clone(), done.clone());
            std::thread::spawn(move || {
                giant.acquire();
                done.store(true, Relaxed);
                giant.release();
            })
        };
        while !done.load(Relaxed) {
            if !giant.relax() {
                std::thread::yield_now();
            }
        }
        assert_eq!(giant.depth.load(Relaxed), 2);
        giant.release();
        giant.release();
        assert!(other.join().is_ok());
    }
}
