//! Lock reservation: at `MPI_THREAD_MULTIPLE`, a thread that calls MPI many times in a row
//! enters the lock by a store.
//!
//! An atomic read-modify-write operation waits for all preceding stores of its core,
//! some of which are to message rings that another core reads.
//! So at each call it costs about as much as the message itself.
//! The thread that initializes MPI gets the first reservation.
//! Afterwards a thread gets the reservation after a number of consecutive acquisitions ([`Streak`]),
//! if no other thread waits for the lock or follows a leader.
//! A thread that waits in MPI while other threads yield gives up its reservation.
//! Any other thread that needs the lock revokes the reservation.
//! (Biased locking: K. Kawachiya, A. Koseki, T. Onodera, "Lock reservation", OOPSLA 2002.
//! Here the revoking side executes the fence for both sides.)
//!
//! Protocol: while the lock is reserved, `owner` is [`RESERVED`], and only the holder can enter.
//! Each thread has a [`Record`] for all its reservations; `holder` is the record of the latest holder.
//! The holder changes `nesting` of its record and then reads `revoked`.
//! The revoking thread sets `revoked`.
//! The holder mostly sees the flag at its next entry or exit, and frees the lock.
//! If the holder does not do so soon, the revoking thread executes a fence and reads `nesting`.
//! The fence between the two steps is [`fence::light`] on the holder's side.
//! The revoking side uses [`fence::heavy`]. So at least one side sees the other's store.
//! The revoking thread may see that the holder is outside, and then frees the lock.
//! The holder may see the revocation when it enters or leaves, and then frees the lock.
//! Both may happen: whichever happens first changes `owner` from [`RESERVED`], under `inside`.
//! Only the record's thread clears `revoked`: when it owns the lock and reserves it again, under `inside`.
//! So a thread that is delayed anywhere in its entry sees the revocation of its last reservation.
//! Other threads read a record only under `inside`, while the lock is reserved.
//! A thread that ends gives up its reservation under `inside` ([`Farewell`]), so its record is not read afterwards.

use super::GlobalLock;
use mpi_base::clock::now_ns;
use mpi_base::fence;
use std::cell::Cell;
use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, Ordering::Relaxed,
};

/// Value of `owner` while the lock is reserved.
/// A thread's identifier ([`me`]) is the address of an aligned structure, so it is never 1.
const RESERVED: usize = 1;

/// Number of spins in which a holder can free a revoked lock itself: about half the duration of a heavy fence.
const GRACE: u32 = 100;

/// The minimum and the maximum number of consecutive acquisitions before a reservation.
const SHORTEST_STREAK: u32 = 8;
const LONGEST_STREAK: u32 = 1 << 16;

/// The duration of a reservation in ns from which a heavy fence at its end is worth while.
const LONG_RESERVATION: u64 = 500_000;

/// The reservations of one thread. No other thread ever has the same record while this thread lives.
#[derive(Debug)]
pub(super) struct Record {
    /// The nesting depth of a holder that has entered by reservation. Only the thread writes this field.
    nesting: AtomicU32,
    /// True if the thread's latest reservation has been revoked or given up.
    revoked: AtomicBool,
    /// True if a heavy fence has followed the revocation.
    fenced: AtomicBool,
}

thread_local! {
    static RECORD: Record = const {
        Record {
            nesting: AtomicU32::new(0),
            revoked: AtomicBool::new(true),
            fenced: AtomicBool::new(false),
        }
    };
    static FAREWELL: Farewell = const { Farewell(Cell::new(None)) };
}

/// Returns a number that is unique among the threads of the process, and greater than 1: the address of the thread's record.
pub fn me() -> usize {
    RECORD.with(|record| std::ptr::from_ref(record).addr())
}

/// Gives up a thread's reservation when the thread ends: the lock that the thread has reserved, if any.
struct Farewell(Cell<Option<&'static GlobalLock>>);

impl Drop for Farewell {
    fn drop(&mut self) {
        if let Some(lock) = self.0.get() {
            lock.forget_holder(me());
        }
    }
}

/// Consecutive acquisitions of the lock by one thread. Only the owner uses the fields.
///
/// A reservation that needs a heavy fence to be revoked soon doubles the number of acquisitions
/// after which the next reservation is made. One that its holder gives up halves the number.
#[derive(Debug)]
struct Streak {
    /// The thread of the last acquisition by an atomic operation.
    thread: AtomicUsize,
    /// The number of further acquisitions of this thread before a reservation.
    left: AtomicU32,
    /// The number of acquisitions before a reservation.
    needed: AtomicU32,
}

/// The reservation of the lock for one thread at a time.
#[derive(Debug)]
pub(super) struct Reservation {
    /// The record of the latest holder, or null.
    /// The holder's reservation is valid while `owner` is [`RESERVED`]. Written under `inside`.
    holder: AtomicPtr<Record>,
    streak: Streak,
    /// The time of the last reservation.
    since_ns: AtomicU64,
    /// True if [`fence::heavy`] works.
    is_possible: AtomicBool,
    /// True if a second thread has ever used the lock.
    was_shared: AtomicBool,
}

impl Reservation {
    pub(super) const fn new() -> Self {
        Reservation {
            holder: AtomicPtr::new(std::ptr::null_mut()),
            streak: Streak {
                thread: AtomicUsize::new(0),
                left: AtomicU32::new(SHORTEST_STREAK),
                needed: AtomicU32::new(SHORTEST_STREAK),
            },
            since_ns: AtomicU64::new(0),
            is_possible: AtomicBool::new(false),
            was_shared: AtomicBool::new(false),
        }
    }

    fn set_needed_streak(&self, needed: u32) {
        let needed = needed.clamp(SHORTEST_STREAK, LONGEST_STREAK);
        self.streak.needed.store(needed, Relaxed);
    }

    fn needed_streak(&self) -> u32 {
        self.streak.needed.load(Relaxed)
    }
}

impl GlobalLock {
    /// Reserves the lock for the calling thread, which holds it.
    /// Has no effect if another thread waits or the kernel has no `membarrier`.
    pub fn reserve(&'static self) {
        if !(fence::register() && fence::heavy()) {
            return;
        }
        {
            let _inside = self.lock();
            self.sleeps.store(0, Relaxed);
            self.has_heavy_fence.store(true, Relaxed);
            self.asymmetric.store(true, Ordering::Release);
        }
        self.reservation.is_possible.store(true, Relaxed);
        self.try_reserve(me());
    }

    /// Counts an acquisition by the calling thread, which has just acquired the lock by an atomic operation.
    /// Reserves the lock after enough consecutive acquisitions.
    #[inline]
    pub(super) fn count_acquisition(&'static self, me: usize) {
        let Streak {
            thread,
            left,
            needed,
        } = &self.reservation.streak;
        if thread.load(Relaxed) != me {
            thread.store(me, Relaxed);
            left.store(needed.load(Relaxed), Relaxed);
            return;
        }
        match left.load(Relaxed) {
            0 => self.reserve_after_streak(me),
            more => left.store(more - 1, Relaxed),
        }
    }

    #[cold]
    fn reserve_after_streak(&'static self, me: usize) {
        let reservation = &self.reservation;
        let needed = reservation.needed_streak();
        reservation.streak.left.store(needed, Relaxed);
        if reservation.is_possible.load(Relaxed) {
            self.try_reserve(me);
        }
    }

    /// Reserves the lock for the calling thread, which owns it, unless other threads wait or follow.
    fn try_reserve(&'static self, me: usize) {
        // Without a farewell, in a thread that is ending, a record could be read after its end.
        let has_farewell = FAREWELL.try_with(|farewell| {
            if let Some(other) = farewell.0.replace(Some(self))
                && !std::ptr::eq(other, self)
            {
                other.forget_holder(me);
            }
        });
        if has_farewell.is_err() {
            return;
        }
        let _inside = self.lock();
        let is_mine = self.owner.load(Relaxed) == me && !self.is_wanted();
        // A follower must be notified at each release, and a leader must clear `leader`.
        // An exit by reservation does neither.
        let is_followed = self.followers.load(Relaxed) > 0 || self.leader.load(Relaxed) != 0;
        if !is_mine || is_followed {
            return;
        }
        RECORD.with(|record| {
            record.nesting.store(self.depth.load(Relaxed), Relaxed);
            record.fenced.store(false, Relaxed);
            record.revoked.store(false, Relaxed);
            let record = std::ptr::from_ref(record).cast_mut();
            self.reservation.holder.store(record, Relaxed);
        });
        self.reservation.since_ns.store(now_ns(), Relaxed);
        self.owner.store(RESERVED, Ordering::Release);
    }

    /// Removes the record of a thread that ends or that reserves another lock, and frees the lock if it is reserved.
    #[cold]
    fn forget_holder(&self, me: usize) {
        let inside = self.lock();
        if self.reservation.holder.load(Relaxed).addr() != me {
            return;
        }
        let was_reserved = self.is_reserved();
        if was_reserved {
            self.owner.store(0, Ordering::Release);
        }
        self.reservation.holder.store(std::ptr::null_mut(), Relaxed);
        drop(inside);
        if was_reserved && self.sleeper.load(Relaxed) {
            self.wake();
        }
    }

    /// Returns true while the lock is reserved.
    #[inline]
    pub(super) fn is_reserved(&self) -> bool {
        self.owner.load(Relaxed) == RESERVED
    }

    /// Returns true if no thread but the first holder has ever used the lock, or waits for it.
    pub fn is_of_one_thread(&self) -> bool {
        self.is_reserved() && !self.reservation.was_shared.load(Relaxed) && !self.is_wanted()
    }

    /// Returns the holder's record. The caller is the holder, or holds `inside`.
    #[inline]
    fn holder(&self) -> Option<&Record> {
        // SAFETY: the pointer is null or that of a thread's record.
        // `Farewell` replaces the pointer under `inside` before the thread ends.
        unsafe { self.reservation.holder.load(Relaxed).as_ref() }
    }

    /// Returns true if the lock is reserved and no thread has revoked the reservation yet.
    /// The caller holds `inside`.
    pub(super) fn is_reservation_valid(&self) -> bool {
        let is_revoked = |record: &Record| record.revoked.load(Relaxed);
        self.is_reserved() && !self.holder().is_none_or(is_revoked)
    }

    /// Enters the lock by reservation, if the caller is the holder.
    #[inline]
    pub(super) fn enter_reserved(&self, me: usize) -> bool {
        let holder = self.reservation.holder.load(Relaxed);
        if holder.addr() != me {
            return false;
        }
        // SAFETY: this is the calling thread's own record, even if another thread is the holder by now.
        let record = unsafe { &*holder };
        let depth = record.nesting.load(Relaxed);
        if depth > 0 {
            record.nesting.store(depth + 1, Relaxed);
            return true;
        }
        if record.revoked.load(Relaxed) {
            return false;
        }
        // SYNC POINT lock.reserved
        record.nesting.store(1, Relaxed);
        fence::light();
        if !record.revoked.load(Relaxed) {
            return true;
        }
        record.nesting.store(0, Ordering::Release);
        self.free_revoked(me);
        false
    }

    /// If the lock was entered by reservation, leaves the lock and returns true.
    #[inline]
    pub(super) fn leave_reserved(&self) -> bool {
        if !self.is_reserved() {
            return false;
        }
        // The caller is inside, so it is the holder.
        let Some(record) = self.holder() else {
            return false;
        };
        let depth = record.nesting.load(Relaxed) - 1;
        record.nesting.store(depth, Ordering::Release);
        fence::light();
        if depth == 0 && record.revoked.load(Relaxed) {
            self.free_revoked(me());
        }
        true
    }

    /// Converts the reservation of the holder, which has entered, to ordinary ownership.
    pub(super) fn convert_reservation(&self, me: usize) {
        if !self.is_reserved() || self.reservation.holder.load(Relaxed).addr() != me {
            return;
        }
        let _inside = self.lock();
        if let Some(record) = self.holder() {
            if !record.revoked.load(Relaxed) {
                let needed = self.reservation.needed_streak();
                self.reservation.set_needed_streak(needed / 2);
            }
            record.revoked.store(true, Relaxed);
            self.depth.store(record.nesting.load(Relaxed), Relaxed);
            record.nesting.store(0, Relaxed);
            self.owner.store(me, Relaxed);
        }
    }

    /// Revokes the reservation for another thread. If the holder is outside, the lock becomes free.
    pub(super) fn revoke_reservation(&self) {
        if !self.is_reserved() {
            return;
        }
        self.reservation.was_shared.store(true, Relaxed);
        {
            let _inside = self.lock();
            if let Some(record) = self.holder().filter(|_| self.is_reserved()) {
                record.revoked.store(true, Relaxed);
            }
        }
        // A holder that calls MPI frees the lock sooner than a heavy fence could.
        for _ in 0..GRACE {
            if !self.is_reserved() {
                return;
            }
            std::hint::spin_loop();
        }
        let _inside = self.lock();
        let Some(record) = self.holder().filter(|_| self.is_reserved()) else {
            return;
        };
        // If the lock was freed and reserved again, the caller will revoke the new reservation.
        if record.revoked.load(Relaxed) && !record.fenced.load(Relaxed) {
            self.fence_revocation(record);
        }
    }

    /// Executes the fence after a revocation, and frees the lock if the holder is outside.
    /// The caller holds `inside`.
    #[cold]
    fn fence_revocation(&self, record: &Record) {
        let reservation = &self.reservation;
        let lasted = now_ns().saturating_sub(reservation.since_ns.load(Relaxed));
        if lasted < LONG_RESERVATION {
            let needed = reservation.needed_streak();
            reservation.set_needed_streak(needed.saturating_mul(2));
        }
        // If the heavy fence fails, the state of the holder is unknown.
        // The holder then frees the lock at its next entry or exit.
        let is_fenced = fence::heavy();
        record.fenced.store(is_fenced, Relaxed);
        if is_fenced && record.nesting.load(Ordering::Acquire) == 0 {
            self.owner.store(0, Ordering::Release);
        }
    }

    /// Frees the lock of the calling thread, which is outside and has lost its reservation.
    #[cold]
    fn free_revoked(&self, me: usize) {
        let inside = self.lock();
        // The revoking thread may have freed the lock, and another thread may have reserved it since.
        let is_holder = self.reservation.holder.load(Relaxed).addr() == me;
        if self.is_reserved() && is_holder {
            self.owner.store(0, Ordering::Release);
        }
        drop(inside);
        if self.sleeper.load(Relaxed) {
            self.wake();
        }
    }
}
