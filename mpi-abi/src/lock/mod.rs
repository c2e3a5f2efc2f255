//! The one lock of the library, for `MPI_THREAD_MULTIPLE`.
//!
//! Below that level no thread takes it: asking whether to is one relaxed load.
//! It is re-entrant, because a program's callback may call MPI again, and a thread that waits in the engine lets the others in
//! between two looks ([`Giant::relax`]).
//! Until a second thread comes, the first one has it reserved and pays no atomic operation at all ([`reserved`]);
//! from then on a lock that no other thread wants is taken by one atomic operation and given back by a store.
//!
//! Of several threads that wait in the engine one looks, the leader, and it alone may sleep while it holds the lock;
//! the others follow it without the lock until it has news or has gone ([`following`]).
//! A thread that comes and finds the lock taken says so and rings the process's bell, so that a sleeping leader makes way.
//!
//! Protocol: `owner` is taken from 0 by compare-and-swap (Acquire) and given back by a store (Release).
//! A thread that goes to sleep sets `sleeper` under `inside`, and only then looks whether the lock is still taken;
//! the thread that gives it back looks at `sleeper` after its store, and wakes one under `inside`.
//! Between the two steps of each stands a fence, so no waking is lost: the sleeper's [`fence::heavy`] executes it for both
//! where the system can do that, and else both have their own ([`Giant::order`]).
//! `depth`, `turns`, `unheeded`, `leader`, `stirred` and `bulletins` are the owner's to write, and so is `called` but for a follower that wakes.
//! `wanting` is counted up before the bell is rung and read by the leader between saying that it sleeps and sleeping.
#![allow(unsafe_code)]

mod following;
mod reserved;
#[cfg(test)]
mod tests;

use mpi_base::fence;
use mpi_base::inbox::Inbox;
use mpi_base::race_detectors;
use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering, Ordering::Relaxed,
};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use reserved::Reservation;

/// How long a thread looks whether the lock is free before it gives its core away: about as long as a short call takes.
const SPINS: u32 = 32;

/// A waiting thread looks at the lock once in so many spins: the holder makes several calls meanwhile, instead of each one being another thread's with all
/// that the engine touches on the wrong core.
const LOOK: u32 = 16;

/// How often it gives its core away before it sleeps.
const YIELDS: u32 = 4;

/// How often a thread makes way in vain before it stays away for a while.
const PATIENCE: u32 = 32;

/// And for how long.
const MAKING_WAY: Duration = Duration::from_micros(50);

/// A re-entrant lock with hand-over.
#[derive(Debug)]
pub struct Giant {
    /// The thread that holds the lock, 0 for none.
    owner: AtomicUsize,
    /// How often the owner has taken it.
    depth: AtomicU32,
    /// Which thread has the lock as long as no other has come.
    reservation: Reservation,
    /// Whether every thread's fences are executed by the thread that needs them ([`fence::heavy`]).
    asymmetric: AtomicBool,
    /// Whether a thread sleeps until the lock has been given back.
    sleeper: AtomicBool,
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
    /// Counts what may be news to followers.
    bulletins: AtomicU32,
    /// How many followers sleep.
    asleep: AtomicU32,
    /// Whether a follower has been woken to lead.
    called: AtomicBool,
    /// Held by a thread that goes to sleep or wakes another.
    inside: Mutex<()>,
    /// Tells a sleeper that the lock is free.
    free: Condvar,
    /// Tells followers of news.
    news: Condvar,
    /// Whose bell wakes the owner; null while there is none.
    inbox: AtomicPtr<Inbox>,
}

thread_local! {
    /// Its address tells threads apart.
    static MARK: u64 = const { 0 };
}

/// A number that no other thread of the process has, and not 0.
pub fn me() -> usize {
    MARK.with(|m| std::ptr::from_ref(m).addr())
}

impl Giant {
    pub const fn new() -> Self {
        Giant {
            owner: AtomicUsize::new(0),
            depth: AtomicU32::new(0),
            reservation: Reservation::new(),
            asymmetric: AtomicBool::new(false),
            sleeper: AtomicBool::new(false),
            turns: AtomicU32::new(0),
            unheeded: AtomicU32::new(0),
            wanting: AtomicU32::new(0),
            leader: AtomicUsize::new(0),
            followers: AtomicU32::new(0),
            stirred: AtomicU32::new(0),
            bulletins: AtomicU32::new(0),
            asleep: AtomicU32::new(0),
            called: AtomicBool::new(false),
            inside: Mutex::new(()),
            free: Condvar::new(),
            news: Condvar::new(),
            inbox: AtomicPtr::new(std::ptr::null_mut()),
        }
    }

    /// From now on a thread that finds the lock taken rings this bell.
    pub fn ring_at(&self, inbox: &'static Inbox) {
        race_detectors::find(self);
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

    /// Gives the lock back, or gives one taking back.
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
            self.leave_followers();
        }
        self.give_back();
    }

    #[inline]
    fn give_back(&self) {
        self.owner.store(0, Ordering::Release);
        self.order();
        if self.sleeper.load(Relaxed) {
            self.wake();
        }
    }

    /// Stands between a store that a sleeper looks for and the look for a sleeper.
    #[inline]
    fn order(&self) {
        if self.asymmetric.load(Relaxed) {
            fence::light();
        } else {
            mpi_base::atomic::fence(Ordering::SeqCst);
        }
    }

    /// The sleeper's counterpart of [`Giant::order`].
    fn order_for_all(&self) {
        if !(self.asymmetric.load(Relaxed) && fence::heavy()) {
            mpi_base::atomic::fence(Ordering::SeqCst);
        }
    }

    #[cold]
    fn wake(&self) {
        // A sleeper has set the flag under `inside` and is on its condition by the time we get it.
        let inside = self.lock();
        self.sleeper.store(false, Relaxed);
        drop(inside);
        self.free.notify_one();
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
        if !self.holds(me) {
            return false;
        }
        let (depth, turn) = (self.depth.load(Relaxed), self.turns.load(Relaxed));
        let unheeded = self.unheeded.load(Relaxed);
        race_detectors::releasing(self);
        self.give_back();
        let had_turn = || self.turns.load(Relaxed) != turn;
        let mut spins = 0;
        while !had_turn() && spins < SPINS {
            std::hint::spin_loop();
            spins += 1;
        }
        if !had_turn() {
            // The thread that wants it may need this core.
            std::thread::yield_now();
        }
        if !had_turn() && unheeded >= PATIENCE {
            // The thread that wants it is asleep, or kept away by the scheduler.
            std::thread::sleep(MAKING_WAY);
        }
        let heeded = had_turn();
        self.take(me, depth);
        let unheeded = if heeded { 0 } else { unheeded + 1 };
        self.unheeded.store(unheeded, Relaxed);
        true
    }

    /// Whether the lock is this thread's, which has it in the ordinary way afterwards if it had it reserved.
    fn holds(&self, me: usize) -> bool {
        self.end_own_reservation(me);
        self.owner.load(Relaxed) == me
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
        race_detectors::acquired(self);
    }

    #[inline]
    fn try_take(&self, me: usize) -> bool {
        self.owner
            .compare_exchange(0, me, Ordering::Acquire, Relaxed)
            .is_ok()
    }

    #[cold]
    fn wait_for_it(&self, me: usize) {
        self.wanting.fetch_add(1, Ordering::SeqCst);
        // SAFETY: null, or an inbox that `ring_at` was given for the rest of the process.
        if let Some(inbox) = unsafe { self.inbox.load(Ordering::Acquire).as_ref() } {
            inbox.bell().ring();
        }
        // It may be reserved between our first look and the next.
        self.end_reservation();
        let mut slept = false;
        while !self.spin(me) {
            self.sleep();
            slept = true;
            self.end_reservation();
        }
        if slept {
            // The thread that woke us has forgotten the other sleepers; they are to be woken after us.
            self.sleeper.store(true, Relaxed);
        }
        self.wanting.fetch_sub(1, Ordering::SeqCst);
    }

    /// Looks for a moment whether the lock becomes free, and takes it.
    fn spin(&self, me: usize) -> bool {
        for _ in 0..YIELDS {
            for spin in 0..SPINS {
                if spin % LOOK == 0 && self.owner.load(Relaxed) == 0 && self.try_take(me) {
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
        self.sleeper.store(true, Relaxed);
        self.order_for_all();
        if self.owner.load(Relaxed) != 0 && !self.is_unattended() {
            let woken = self.free.wait(inside);
            drop(woken.unwrap_or_else(PoisonError::into_inner));
        }
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Giant {
    fn default() -> Self {
        Giant::new()
    }
}
