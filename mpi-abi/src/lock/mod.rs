//! The global lock of the library, for `MPI_THREAD_MULTIPLE`.
//!
//! Below that level no thread takes the lock: the check is one relaxed load.
//! The lock is reentrant, because a callback of the program may call MPI.
//! A thread that waits in the engine admits other threads between two polls.
//! See [`GlobalLock::yield_to_waiters`].
//! A thread that makes many calls in a row reserves the lock ([`reserved`]).
//! Until another thread arrives, it then enters without an atomic read-modify-write operation.
//! Without a reservation, an uncontended lock costs one atomic operation to acquire and a store to release.
//!
//! Of several threads that wait in the engine, one is the leader. The leader polls.
//! Only the leader may sleep while it holds the lock.
//! The other threads are followers ([`following`]): they wait without the lock until the leader
//! has events or leaves.
//! If more threads wait than the process has cores, each thread polls and then yields ([`crowd`]).
//! A leader that only polls would keep the core from the threads that cause the awaited events.
//! An oversubscribed thread that has waited for some time without a result becomes a follower, too.
//! A thread that finds the lock taken increments `waiters` and rings the process's doorbell.
//! A sleeping leader then wakes and releases the lock.
//!
//! Protocol: `owner` is set from 0 by compare-and-swap (Acquire), and cleared by a store (Release).
//! A thread that goes to sleep sets `sleeper` under `inside`, and then reads `owner` again.
//! The releasing thread reads `sleeper` after its store, and wakes a sleeper under `inside`.
//! A fence separates the two steps on each side, so no wake-up is lost.
//! If the system has `membarrier`, the sleeper's [`fence::heavy_here`] executes both sides' fences.
//! Otherwise each side executes its own fence ([`GlobalLock::release_fence`]).
//! The heavy fence interrupts all cores.
//! If threads sleep often, each side therefore executes its own fence ([`RARE_SLEEPS`]).
//! Only the owner changes `asymmetric`, and only the owner releases.
//! So every release after a change uses the new fence, and a sleeper that reads the new value
//! also sees all releases before the change (Release and Acquire).
//! The change is made under `inside`, so the owner then sees the flags of all earlier sleepers.
//! Only the owner writes `depth`, `turns`, `unused_hand_overs`, `leader`, `yielding`,
//! `crowded_polls`, `news_polls` and `following`.
//! Only the owner or a waking follower writes `leader_called`.
//! `waiters` is incremented before the doorbell is rung.
//! The leader announces that it sleeps, reads `waiters`, and then sleeps.
#![allow(unsafe_code)]

mod crowd;
mod followers;
mod following;
mod home;
mod outside;
mod reserved;
mod spinning;
#[cfg(test)]
mod tests;
pub mod watcher;

use mpi_base::fence;
use mpi_base::inbox::Inbox;
use mpi_base::race_detectors;
use mpi_base::yield_now::{Yielded, timed_yield};
use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering, Ordering::Relaxed,
};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use followers::Following;
pub use home::{home_of, set_home};
pub use outside::{enter_again, leave_entirely};
pub use reserved::me;
use reserved::{LOCKS, Reservation, caller, is_inside};

/// Spins on a taken lock before a yield of the core: about the duration of a short call.
const SPINS: u32 = 32;

/// Maximum number of sleeps per [`PERIOD`] acquisitions for which the heavy fence is used.
/// Above this number, each release executes its own fence.
/// A fence at a release waits for preceding stores to a message ring, some ten nanoseconds.
/// The heavy fence of a sleep takes about ten microseconds on each core.
const RARE_SLEEPS: u32 = 32;
const PERIOD: u32 = 1 << 18;

/// Number of unused hand-overs after which the owner sleeps for [`HAND_OVER_SLEEP`].
const PATIENCE: u32 = 32;

/// The limit, as [`PATIENCE`], while a computing process shares the core and no thread yields.
const PATIENCE_BESIDE_LOAD: u32 = 4;

/// The duration of the sleep after unused hand-overs.
const HAND_OVER_SLEEP: Duration = Duration::from_micros(50);

/// A reentrant lock with hand-over.
#[derive(Debug)]
pub struct GlobalLock {
    /// The number of the lane that the lock serialises; 0 for the lock of all other calls.
    number: usize,
    /// The thread that holds the lock, or 0.
    owner: AtomicUsize,
    /// Nesting depth of the owner.
    depth: AtomicU32,
    /// The reservation for a thread that makes many calls in a row.
    reservation: Reservation,
    /// True if a thread that goes to sleep executes the fence of both sides ([`fence::heavy_here`]).
    asymmetric: AtomicBool,
    /// True if `membarrier` works for this process:
    /// one thread can execute a full fence on all threads ([`fence::heavy_here`]).
    has_heavy_fence: AtomicBool,
    /// Number of sleeps in the current period. Written under `inside`, like `period_began`.
    sleeps: AtomicU32,
    period_began: AtomicU32,
    /// True if a thread sleeps until the lock is released.
    sleeper: AtomicBool,
    /// Counts acquisitions: a thread that released the lock can detect an acquisition by another.
    turns: AtomicU32,
    /// Number of consecutive hand-overs that no thread accepted.
    unused_hand_overs: AtomicU32,
    /// Number of threads that wait for the lock.
    waiters: AtomicU32,
    /// The thread that polls for all threads waiting in the engine, or 0.
    leader: AtomicUsize,
    followers: AtomicU32,
    /// Number of cores available to the threads of this process.
    cores: AtomicU32,
    /// The cores on which the threads of this process gather in a crowd.
    home: home::Home,
    /// The number of threads that yield between two polls of their own.
    yielding: AtomicU32,
    /// Number of remaining empty polls for which the process still counts as oversubscribed.
    crowded_polls: AtomicU32,
    /// Number of remaining waits without a yield, because another process computes.
    beside_load: AtomicU32,
    /// Polls with events since the last notification of the followers.
    news_polls: AtomicU32,
    /// The threads that follow, for the owner.
    following: Following,
    /// Number of followers that sleep.
    sleeping_followers: AtomicU32,
    /// True if a follower was woken to become the leader.
    leader_called: AtomicBool,
    /// The mutex of threads that go to sleep or wake another thread.
    inside: Mutex<()>,
    /// Wakes a sleeper after the lock was released.
    free: Condvar,
    /// The inbox whose doorbell wakes the owner, or null.
    inbox: AtomicPtr<Inbox>,
}

impl GlobalLock {
    /// Creates the lock of a lane; `number` is below 8.
    pub const fn new(number: usize) -> Self {
        assert!(number < LOCKS);
        GlobalLock {
            number,
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
            home: home::Home::new(),
            yielding: AtomicU32::new(0),
            crowded_polls: AtomicU32::new(0),
            beside_load: AtomicU32::new(0),
            news_polls: AtomicU32::new(0),
            following: Following::new(),
            sleeping_followers: AtomicU32::new(0),
            leader_called: AtomicBool::new(false),
            inside: Mutex::new(()),
            free: Condvar::new(),
            inbox: AtomicPtr::new(std::ptr::null_mut()),
        }
    }

    /// Sets the doorbell that a thread rings if it finds the lock taken.
    pub fn set_doorbell(&self, inbox: &'static Inbox) {
        race_detectors::find(self);
        let inbox = std::ptr::from_ref(inbox).cast_mut();
        self.inbox.store(inbox, Ordering::Release);
    }

    /// Sets the number of cores available to this process's threads.
    pub fn set_cores(&self, cores: u32) {
        self.cores.store(cores.max(1), Relaxed);
    }

    /// Returns true if a thread waits for the lock.
    #[inline]
    pub fn is_wanted(&self) -> bool {
        self.waiters.load(Ordering::SeqCst) > 0
    }

    /// Acquires the lock, or increments the nesting depth.
    #[inline(always)]
    pub fn acquire(&'static self) {
        let caller = caller(self);
        let me = caller.me;
        if self.enter_reserved(caller) {
            race_detectors::acquired(self);
            return;
        }
        if self.owner.load(Relaxed) == me {
            self.depth.store(self.depth.load(Relaxed) + 1, Relaxed);
        } else {
            self.take(me, 1);
        }
    }

    /// Decrements the nesting depth, and releases the lock at depth 0.
    #[inline(always)]
    pub fn release(&self) {
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

    /// Releases the lock. The caller accesses nothing that the lock protects afterwards.
    #[inline]
    fn unlock(&self) {
        race_detectors::releasing(self);
        // SYNC POINT lock.sleeper
        self.owner.store(0, Ordering::Release);
        self.release_fence();
        if self.sleeper.load(Relaxed) {
            self.wake();
        }
    }

    /// The fence of the releasing side, between its store and its check for a sleeper.
    #[inline]
    fn release_fence(&self) {
        if self.asymmetric.load(Relaxed) {
            fence::light();
        } else {
            mpi_base::atomic::fence(Ordering::SeqCst);
        }
    }

    /// The fence of the sleeping side, see [`GlobalLock::release_fence`].
    /// The caller holds `inside`.
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
        if !(asymmetric && fence::heavy_here()) {
            mpi_base::atomic::fence(Ordering::SeqCst);
        }
    }

    /// Chooses the fences: a heavy fence per sleep, or one fence per release.
    /// The caller has just acquired the lock.
    #[cold]
    fn choose_fences(&self, asymmetric: bool) {
        let _inside = self.lock();
        self.asymmetric.store(asymmetric, Ordering::Release);
    }

    #[cold]
    fn wake(&self) {
        // A sleeper sets the flag under `inside`.
        // So the sleeper waits on its condition variable when this thread holds the mutex.
        let inside = self.lock();
        self.sleeper.store(false, Relaxed);
        drop(inside);
        self.free.notify_one();
    }

    /// Hands the lock over to waiting threads. Returns true if there were any.
    ///
    /// Only the owner may call this function, while no part of the state is borrowed.
    #[inline]
    pub fn yield_to_waiters(&'static self) -> bool {
        self.is_wanted() && self.hand_over()
    }

    #[cold]
    fn hand_over(&'static self) -> bool {
        let me = me();
        if !self.holds(me) {
            return false;
        }
        let (depth, turn) = (self.depth.load(Relaxed), self.turns.load(Relaxed));
        let unused_hand_overs = self.unused_hand_overs.load(Relaxed);
        self.unlock();
        let was_taken = || self.turns.load(Relaxed) != turn;
        let mut spins = 0;
        while !was_taken() && spins < SPINS {
            std::hint::spin_loop();
            spins += 1;
        }
        // The waiting thread may need this core, so this thread yields it.
        let yielded = was_taken() || self.give_core_away();
        let patience = match yielded {
            true => PATIENCE,
            false => PATIENCE_BESIDE_LOAD,
        };
        if !was_taken() && unused_hand_overs >= patience {
            // The waiting thread sleeps or is preempted.
            std::thread::sleep(HAND_OVER_SLEEP);
        }
        let used = was_taken();
        self.take(me, depth);
        let unused_hand_overs = if used { 0 } else { unused_hand_overs + 1 };
        self.unused_hand_overs.store(unused_hand_overs, Relaxed);
        true
    }

    /// Yields the core once. Returns false if a computing process shares the core.
    /// If such a process shares the core, a yield would cost a time slice.
    ///
    /// The caller does not hold the lock.
    fn give_core_away(&self) -> bool {
        let left = self.beside_load.load(Relaxed);
        if left > 0 {
            // If two threads decrement the counter concurrently, the next yield is one wait later.
            self.beside_load.store(left - 1, Relaxed);
            return false;
        }
        let took = timed_yield();
        if took > Yielded::LONG {
            self.beside_load.store(took.waits_until_next(), Relaxed);
        }
        true
    }

    /// Returns true if this thread owns the lock. Converts a reservation to ownership.
    fn holds(&self, me: usize) -> bool {
        self.convert_reservation(caller(self));
        self.owner.load(Relaxed) == me
    }

    /// Acquires the lock, which this thread does not hold.
    #[inline]
    fn take(&'static self, me: usize, depth: u32) {
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
        self.count_acquisition(me);
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
        // SAFETY: the pointer is null, or the `'static` inbox that `set_doorbell` received.
        if let Some(inbox) = unsafe { self.inbox.load(Ordering::Acquire).as_ref() } {
            inbox.doorbell().ring_owner();
        }
        // The lock may have been reserved since the first check.
        self.revoke_reservation();
        let mut slept = false;
        while !spinning::spin(self, me) {
            self.sleep();
            slept = true;
            self.revoke_reservation();
        }
        if slept {
            // The thread that woke this one cleared the flag for all sleepers.
            // The flag is set again, so that the next release wakes another sleeper.
            self.sleeper.store(true, Relaxed);
        }
        self.waiters.fetch_sub(1, Ordering::SeqCst);
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

/// Acquires a lock, if no thread owns it, waits for it, or is inside by a reservation.
/// Returns false if the calling thread itself is inside.
///
/// Revokes the reservation of a thread that is outside.
#[cold]
pub fn try_acquire(lock: &'static GlobalLock) -> bool {
    let caller = caller(lock);
    if lock.is_wanted() || is_inside(lock, caller) {
        return false;
    }
    if !lock.enter_reserved(caller) {
        lock.revoke_reservation();
        if !lock.try_take(caller.me) {
            return false;
        }
        lock.depth.store(1, Relaxed);
        let turns = lock.turns.load(Relaxed).wrapping_add(1);
        lock.turns.store(turns, Relaxed);
    }
    race_detectors::acquired(lock);
    true
}

impl Default for GlobalLock {
    fn default() -> Self {
        GlobalLock::new(0)
    }
}
