//! The global lock of the library, for `MPI_THREAD_MULTIPLE`.
//!
//! Below that level no thread takes it: the check is one relaxed load.
//! It is re-entrant, because a program's callback may call MPI again, and a thread that waits in the engine admits the others
//! between two polls ([`GlobalLock::yield_to_waiters`]).
//! Until a second thread arrives, the lock is reserved for the first one, which pays no atomic operation at all ([`reserved`]);
//! afterwards an uncontended lock is taken by one atomic operation and released by a store.
//!
//! Of several threads that wait in the engine one is the leader: it polls, and it alone may sleep while it holds the lock;
//! the others follow it without the lock until it has news or has left ([`following`]).
//! If more threads wait than the process has cores, each polls for itself and yields without the lock between two polls, until it has done so without a result
//! for a while and follows, too ([`crowd`]): a leader that polls would only keep the core from the threads that it waits for.
//! A thread that finds the lock taken increments `waiters` and rings the process's doorbell, so that a sleeping leader releases the lock.
//!
//! Protocol: `owner` is taken from 0 by compare-and-swap (Acquire) and released by a store (Release).
//! A thread that goes to sleep sets `sleeper` under `inside`, and only then checks that the lock is still taken;
//! the thread that releases it reads `sleeper` after its store, and wakes one under `inside`.
//! A fence separates the two steps on each side, so no wake-up is lost: the sleeper's [`fence::heavy`] executes it for both
//! where the system supports that, and otherwise both have their own ([`GlobalLock::release_fence`]).
//! The heavy fence interrupts all cores, so where threads sleep often both have their own as well ([`RARE_SLEEPS`]). Only the owner changes `asymmetric`, and only the owner releases,
//! so every owner since the change releases accordingly; a sleeper that sees the change sees those owners.
//! A change back is made under `inside`, so that each sleeper is either before it, and its flag is seen, or after it.
//! Only the owner writes `depth`, `turns`, `unused_hand_overs`, `leader`, `yielding`, `crowded_polls`, `news_polls` and `notifications`, and `leader_called` except for a follower that wakes.
//! `waiters` is incremented before the doorbell is rung; the leader reads it after announcing that it sleeps and before sleeping.
#![allow(unsafe_code)]

mod crowd;
mod following;
mod reserved;
#[cfg(test)]
mod tests;

use mpi_base::fence;
use mpi_base::inbox::Inbox;
use mpi_base::race_detectors;
use mpi_base::yield_now::{Yielded, timed_yield};
use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering, Ordering::Relaxed,
};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use reserved::Reservation;

/// Spins on a taken lock before the thread yields its core: about as long as a short call takes.
const SPINS: u32 = 32;

/// A waiting thread reads the lock once in this many spins, so that the holder makes several calls meanwhile. Otherwise the lock would change
/// threads at each call, and with it all cache lines that the engine touches.
const POLL_EVERY: u32 = 16;

/// Number of yields before a waiting thread sleeps; fewer if a process that computes shares the core.
const YIELDS: u32 = 4;

/// If more than this number of threads went to sleep in the last [`PERIOD`] acquisitions, releases have a fence of their own:
/// it waits for the stores to a ring, some ten nanoseconds, where the heavy fence of a sleep takes about ten microseconds of each core.
const RARE_SLEEPS: u32 = 32;
const PERIOD: u32 = 1 << 18;

/// Number of hand-overs without a taker after which a thread sleeps for [`HAND_OVER_SLEEP`].
const PATIENCE: u32 = 32;

/// The same beside a process that computes, where a hand-over does not yield.
const PATIENCE_BESIDE_LOAD: u32 = 4;

/// The duration of that sleep.
const HAND_OVER_SLEEP: Duration = Duration::from_micros(50);

/// A re-entrant lock with hand-over.
#[derive(Debug)]
pub struct GlobalLock {
    /// The thread that holds the lock, 0 for none.
    owner: AtomicUsize,
    /// Nesting depth of the owner.
    depth: AtomicU32,
    /// The thread that has the lock reserved until a second one arrives.
    reservation: Reservation,
    /// True if a thread that needs other threads' fences executes them ([`fence::heavy`]).
    asymmetric: AtomicBool,
    /// True if the system executes other threads' fences for this process.
    has_heavy_fence: AtomicBool,
    /// Number of sleeps in the current period, and `turns` when it began; written under `inside`.
    sleeps: AtomicU32,
    period_began: AtomicU32,
    /// True if a thread sleeps until the lock is released.
    sleeper: AtomicBool,
    /// Counts acquisitions, so that a thread that released the lock detects that another has taken it.
    turns: AtomicU32,
    /// Number of consecutive hand-overs without a taker.
    unused_hand_overs: AtomicU32,
    /// Number of threads that wait for the lock.
    waiters: AtomicU32,
    /// The thread that polls for all that wait in the engine, 0 for none; and the number of its followers.
    leader: AtomicUsize,
    followers: AtomicU32,
    /// The number of threads that may wait at once without sharing a core.
    cores: AtomicU32,
    /// The number of threads that yield between two polls of their own.
    yielding: AtomicU32,
    /// The number of empty polls for which more threads than cores are assumed to wait.
    crowded_polls: AtomicU32,
    /// The number of waits for the lock that do not yield, because another process computes.
    beside_load: AtomicU32,
    /// Polls with news that the followers have not been notified of.
    news_polls: AtomicU32,
    /// Counts notifications of followers.
    notifications: AtomicU32,
    /// Number of followers that sleep.
    sleeping_followers: AtomicU32,
    /// True if a follower has been woken to lead.
    leader_called: AtomicBool,
    /// Held by a thread that goes to sleep or wakes another.
    inside: Mutex<()>,
    /// Wakes a sleeper when the lock is free.
    free: Condvar,
    /// Wakes followers when there is news.
    news: Condvar,
    /// The inbox whose doorbell wakes the owner; null while there is none.
    inbox: AtomicPtr<Inbox>,
}

thread_local! {
    /// Its address identifies the thread.
    static MARK: u64 = const { 0 };
}

/// Returns a number that no other thread of the process has, and that is not 0.
pub fn me() -> usize {
    MARK.with(|m| std::ptr::from_ref(m).addr())
}

impl GlobalLock {
    pub const fn new() -> Self {
        GlobalLock {
            owner: AtomicUsize::new(0),
            depth: AtomicU32::new(0),
            reservation: Reservation::new(),
            asymmetric: AtomicBool::new(false),
            has_heavy_fence: AtomicBool::new(false),
            sleeps: AtomicU32::new(0),
            period_began: AtomicU32::new(0),
            sleeper: AtomicBool::new(false),
            turns: AtomicU32::new(0),
            unused_hand_overs: AtomicU32::new(0),
            waiters: AtomicU32::new(0),
            leader: AtomicUsize::new(0),
            followers: AtomicU32::new(0),
            cores: AtomicU32::new(u32::MAX),
            yielding: AtomicU32::new(0),
            crowded_polls: AtomicU32::new(0),
            beside_load: AtomicU32::new(0),
            news_polls: AtomicU32::new(0),
            notifications: AtomicU32::new(0),
            sleeping_followers: AtomicU32::new(0),
            leader_called: AtomicBool::new(false),
            inside: Mutex::new(()),
            free: Condvar::new(),
            news: Condvar::new(),
            inbox: AtomicPtr::new(std::ptr::null_mut()),
        }
    }

    /// Makes a thread that finds the lock taken ring this doorbell from now on.
    pub fn set_doorbell(&self, inbox: &'static Inbox) {
        race_detectors::find(self);
        let inbox = std::ptr::from_ref(inbox).cast_mut();
        self.inbox.store(inbox, Ordering::Release);
    }

    /// Sets the number of cores that this process's threads have.
    pub fn set_cores(&self, cores: u32) {
        self.cores.store(cores.max(1), Relaxed);
    }

    /// Returns true if a thread waits for the lock.
    #[inline]
    pub fn is_wanted(&self) -> bool {
        self.waiters.load(Ordering::SeqCst) > 0
    }

    /// Takes the lock, or increments its nesting depth.
    #[inline]
    pub fn acquire(&self) {
        let me = me();
        if self.enter_reserved(me) {
            race_detectors::acquired(self);
            return;
        }
        if self.owner.load(Relaxed) == me {
            self.depth.store(self.depth.load(Relaxed) + 1, Relaxed);
        } else {
            self.take(me, 1);
        }
    }

    /// Decrements the nesting depth; at 0 releases the lock.
    #[inline]
    pub fn release(&self) {
        race_detectors::releasing(self);
        if self.leave_reserved() {
            return;
        }
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
            self.notify_at_release();
        }
        self.unlock();
    }

    #[inline]
    fn unlock(&self) {
        // SYNC POINT lock.sleeper
        self.owner.store(0, Ordering::Release);
        self.release_fence();
        if self.sleeper.load(Relaxed) {
            self.wake();
        }
    }

    /// The releasing side's fence, between its store and its check for a sleeper.
    #[inline]
    fn release_fence(&self) {
        if self.asymmetric.load(Relaxed) {
            fence::light();
        } else {
            mpi_base::atomic::fence(Ordering::SeqCst);
        }
    }

    /// The sleeper's counterpart of [`GlobalLock::release_fence`]; the caller holds `inside`.
    fn sleeper_fence(&self) {
        let asymmetric = self.asymmetric.load(Ordering::Acquire);
        let turns = self.turns.load(Relaxed);
        let sleeps = match turns.wrapping_sub(self.period_began.load(Relaxed)) < PERIOD {
            true => self.sleeps.load(Relaxed).saturating_add(1),
            false => {
                self.period_began.store(turns, Relaxed);
                1
            }
        };
        self.sleeps.store(sleeps, Relaxed);
        if !(asymmetric && fence::heavy()) {
            mpi_base::atomic::fence(Ordering::SeqCst);
        }
    }

    /// Chooses whether a sleep has a heavy fence or each release one of its own; the caller has just taken the lock.
    #[cold]
    fn choose_fences(&self, asymmetric: bool) {
        let _inside = self.lock();
        self.asymmetric.store(asymmetric, Ordering::Release);
    }

    #[cold]
    fn wake(&self) {
        // A sleeper has set the flag under `inside` and waits on its condition variable by the time this thread holds the mutex.
        let inside = self.lock();
        self.sleeper.store(false, Relaxed);
        drop(inside);
        self.free.notify_one();
    }

    /// Admits other threads, if any is waiting; returns true if one was.
    ///
    /// Only the owner may call it, and only while nothing is borrowed from the state.
    #[inline]
    pub fn yield_to_waiters(&self) -> bool {
        self.is_wanted() && self.hand_over()
    }

    #[cold]
    fn hand_over(&self) -> bool {
        let me = me();
        if !self.holds(me) {
            return false;
        }
        let (depth, turn) = (self.depth.load(Relaxed), self.turns.load(Relaxed));
        let unused_hand_overs = self.unused_hand_overs.load(Relaxed);
        race_detectors::releasing(self);
        self.unlock();
        let was_taken = || self.turns.load(Relaxed) != turn;
        let mut spins = 0;
        while !was_taken() && spins < SPINS {
            std::hint::spin_loop();
            spins += 1;
        }
        // The waiting thread may need this core.
        let yielded = was_taken() || self.give_core_away();
        let patience = match yielded {
            true => PATIENCE,
            false => PATIENCE_BESIDE_LOAD,
        };
        if !was_taken() && unused_hand_overs >= patience {
            // The waiting thread is asleep, or preempted.
            std::thread::sleep(HAND_OVER_SLEEP);
        }
        let used = was_taken();
        self.take(me, depth);
        let unused_hand_overs = if used { 0 } else { unused_hand_overs + 1 };
        self.unused_hand_overs.store(unused_hand_overs, Relaxed);
        true
    }

    /// Yields once; returns false beside a process that computes, where a yield would take a time slice.
    ///
    /// The caller does not hold the lock.
    fn give_core_away(&self) -> bool {
        let left = self.beside_load.load(Relaxed);
        if left > 0 {
            // If two threads decrement it at once, the next yield comes one wait later.
            self.beside_load.store(left - 1, Relaxed);
            return false;
        }
        let took = timed_yield();
        if took > Yielded::LONG {
            self.beside_load.store(took.waits_until_next(), Relaxed);
        }
        true
    }

    /// Returns true if this thread owns the lock; a reservation becomes ordinary ownership.
    fn holds(&self, me: usize) -> bool {
        self.convert_reservation(me);
        self.owner.load(Relaxed) == me
    }

    /// Takes the lock, which this thread does not hold.
    #[inline]
    fn take(&self, me: usize, depth: u32) {
        if !self.try_take(me) {
            self.wait_until_free(me);
            let rarely = self.sleeps.load(Relaxed) <= RARE_SLEEPS;
            if self.asymmetric.load(Relaxed) != (rarely && self.has_heavy_fence.load(Relaxed)) {
                self.choose_fences(rarely);
            }
        }
        self.depth.store(depth, Relaxed);
        self.turns
            .store(self.turns.load(Relaxed).wrapping_add(1), Relaxed);
        race_detectors::acquired(self);
    }

    #[inline]
    fn try_take(&self, me: usize) -> bool {
        self.owner
            .compare_exchange(0, me, Ordering::Acquire, Relaxed)
            .is_ok()
    }

    #[cold]
    fn wait_until_free(&self, me: usize) {
        self.waiters.fetch_add(1, Ordering::SeqCst);
        // SAFETY: null, or an inbox that `set_doorbell` received with lifetime `'static`.
        if let Some(inbox) = unsafe { self.inbox.load(Ordering::Acquire).as_ref() } {
            inbox.doorbell().ring();
        }
        // It may be reserved between the first check and the next.
        self.revoke_reservation();
        let mut slept = false;
        while !self.spin(me) {
            self.sleep();
            slept = true;
            self.revoke_reservation();
        }
        if slept {
            // The thread that woke this one cleared the flag for all sleepers; set it again so that they are woken after this one.
            self.sleeper.store(true, Relaxed);
        }
        self.waiters.fetch_sub(1, Ordering::SeqCst);
    }

    /// Spins for a moment until the lock is free, and takes it; returns false if it stayed taken.
    fn spin(&self, me: usize) -> bool {
        for _ in 0..YIELDS {
            for spin in 0..SPINS {
                if spin % POLL_EVERY == 0 && self.owner.load(Relaxed) == 0 && self.try_take(me) {
                    return true;
                }
                std::hint::spin_loop();
            }
            if !self.give_core_away() {
                return false;
            }
        }
        false
    }

    /// Sleeps until the lock is released, unless it is free.
    fn sleep(&self) {
        let inside = self.lock();
        // SYNC POINT lock.sleeper
        self.sleeper.store(true, Relaxed);
        self.sleeper_fence();
        if self.owner.load(Relaxed) != 0 && !self.is_reservation_valid() {
            let woken = self.free.wait(inside);
            drop(woken.unwrap_or_else(PoisonError::into_inner));
        }
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for GlobalLock {
    fn default() -> Self {
        GlobalLock::new()
    }
}
