//! Lock reservation for a program with `MPI_THREAD_MULTIPLE` that calls MPI from one thread.
//!
//! The holder of the reservation acquires the lock by a store.
//! Only the thread that initializes MPI gets the reservation, and only once.
//! The reservation is revoked permanently when another thread needs the lock.
//! (Biased locking: K. Kawachiya, A. Koseki, T. Onodera, "Lock reservation", OOPSLA 2002.
//! Here the revoking side executes the fence for both sides.)
//!
//! Protocol: while the lock is reserved, `owner` is [`RESERVED`], and only the holder can enter.
//! The holder changes `nesting` and then reads `revoked`.
//! The revoking thread sets `revoked` and then reads `nesting`.
//! The fence between the two steps is [`fence::light`] on the holder's side.
//! The revoking side uses [`fence::heavy`]. So at least one side sees the other's store.
//! The revoking thread may see that the holder is outside, and then frees the lock.
//! The holder may see the revocation when it enters or leaves, and then frees the lock.
//! Both may happen: whichever happens first changes `owner` from [`RESERVED`], under `inside`.

use super::{GlobalLock, me};
use mpi_base::fence;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering, Ordering::Relaxed};

/// Value of `owner` while the lock is reserved.
/// A thread's identifier (`me` in the parent module) is the address of a `u64`, so it is never 1.
const RESERVED: usize = 1;

/// The reservation of the lock for one thread, until a second thread arrives.
#[derive(Debug)]
pub(super) struct Reservation {
    /// The thread that has or had the reservation, or 0.
    holder: AtomicUsize,
    /// The holder's nesting depth. Only the holder writes this field.
    nesting: AtomicU32,
    /// True if the reservation has been revoked.
    revoked: AtomicBool,
}

impl Reservation {
    pub(super) const fn new() -> Self {
        Reservation {
            holder: AtomicUsize::new(0),
            nesting: AtomicU32::new(0),
            revoked: AtomicBool::new(false),
        }
    }
}

impl GlobalLock {
    /// Reserves the lock for the calling thread, which holds it.
    /// Has no effect if another thread waits or the kernel has no `membarrier`.
    pub fn reserve(&self) {
        if !(fence::register() && fence::heavy()) {
            return;
        }
        let (me, _inside) = (me(), self.lock());
        self.sleeps.store(0, Relaxed);
        self.has_heavy_fence.store(true, Relaxed);
        self.asymmetric.store(true, Ordering::Release);
        let mine = self.owner.load(Relaxed) == me && !self.is_wanted();
        if mine && self.reservation.holder.load(Relaxed) == 0 {
            self.reservation
                .nesting
                .store(self.depth.load(Relaxed), Relaxed);
            self.reservation.holder.store(me, Relaxed);
            self.owner.store(RESERVED, Ordering::Release);
        }
    }

    /// Returns true while no thread but the holder has ever used the lock.
    #[inline]
    pub(super) fn is_reserved(&self) -> bool {
        self.owner.load(Relaxed) == RESERVED
    }

    /// Returns true if no thread but the holder has ever used the lock, or waits for it.
    pub fn is_of_one_thread(&self) -> bool {
        self.is_reservation_valid() && !self.is_wanted()
    }

    /// Returns true if the lock is reserved and no thread has revoked the reservation yet.
    pub(super) fn is_reservation_valid(&self) -> bool {
        self.is_reserved() && !self.reservation.revoked.load(Relaxed)
    }

    /// Enters the lock by reservation, if the caller is the holder.
    #[inline]
    pub(super) fn enter_reserved(&self, me: usize) -> bool {
        let Reservation {
            holder,
            nesting,
            revoked,
        } = &self.reservation;
        if holder.load(Relaxed) != me {
            return false;
        }
        let depth = nesting.load(Relaxed);
        if depth > 0 {
            nesting.store(depth + 1, Relaxed);
            return true;
        }
        if revoked.load(Relaxed) {
            return false;
        }
        nesting.store(1, Relaxed);
        fence::light();
        if !revoked.load(Relaxed) {
            return true;
        }
        nesting.store(0, Ordering::Release);
        self.free_revoked();
        false
    }

    /// If the lock was entered by reservation, leaves the lock and returns true.
    #[inline]
    pub(super) fn leave_reserved(&self) -> bool {
        if !self.is_reserved() {
            return false;
        }
        let Reservation {
            nesting, revoked, ..
        } = &self.reservation;
        let depth = nesting.load(Relaxed) - 1;
        nesting.store(depth, Ordering::Release);
        fence::light();
        if depth == 0 && revoked.load(Relaxed) {
            self.free_revoked();
        }
        true
    }

    /// Converts the reservation of the holder, which has entered, to ordinary ownership.
    pub(super) fn convert_reservation(&self, me: usize) {
        let Reservation {
            holder,
            nesting,
            revoked,
        } = &self.reservation;
        if self.is_reserved() && holder.load(Relaxed) == me {
            let _inside = self.lock();
            revoked.store(true, Relaxed);
            self.depth.store(nesting.load(Relaxed), Relaxed);
            nesting.store(0, Relaxed);
            self.owner.store(me, Relaxed);
        }
    }

    /// Revokes the reservation for another thread. If the holder is outside, the lock becomes free.
    pub(super) fn revoke_reservation(&self) {
        if !self.is_reserved() {
            return;
        }
        let Reservation {
            nesting, revoked, ..
        } = &self.reservation;
        let _inside = self.lock();
        if self.is_reserved() && !revoked.load(Relaxed) {
            revoked.store(true, Relaxed);
            // If the heavy fence fails, the state of the holder is unknown.
            // The holder then frees the lock at its next entry or exit.
            if fence::heavy() && nesting.load(Ordering::Acquire) == 0 {
                self.owner.store(0, Ordering::Release);
            }
        }
    }

    /// Frees the lock of a holder that is outside and has lost the reservation.
    #[cold]
    fn free_revoked(&self) {
        let inside = self.lock();
        if self.is_reserved() {
            self.owner.store(0, Ordering::Release);
        }
        drop(inside);
        if self.sleeper.load(Relaxed) {
            self.wake();
        }
    }
}
