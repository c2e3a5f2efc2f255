//! The lock of a program that asks for `MPI_THREAD_MULTIPLE` and calls from one thread: reserved, so that taking it is a store.
//!
//! The reservation is made once, for the thread that initializes MPI, and is lost for good when another thread wants the lock.
//! (Biased locking: K. Kawachiya, A. Koseki, T. Onodera, "Lock reservation", OOPSLA 2002, here with the rare side's fence executed for both.)
//!
//! Protocol: while the lock is reserved, `owner` is [`RESERVED`], which no thread can take, and only the holder is ever inside.
//! The holder raises or lowers `within` and then looks at `lost`; the thread that ends the reservation sets `lost` and then looks at `within`.
//! The fence between the two steps of each is [`fence::light`] for the holder and [`fence::heavy`] for the other, so one of them sees the other:
//! either the holder is known to be outside, and the lock is made free for it;
//! or the holder finds its loss, on its way in or out, and makes the lock free itself.
//! Both may; the step from [`RESERVED`] is made under `inside`, by the thread that finds it still to be made.

use super::{Giant, me};
use mpi_base::fence;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering, Ordering::Relaxed};

/// In `owner`: the lock is the holder's; no thread has this number, since a thread's is the address of a word.
const RESERVED: usize = 1;

/// Which thread has the lock as long as no other has come.
#[derive(Debug)]
pub(super) struct Reservation {
    /// The thread that has or had it, 0 for none.
    holder: AtomicUsize,
    /// How often the holder has entered; only the holder writes it.
    within: AtomicU32,
    /// Whether another thread has come.
    lost: AtomicBool,
}

impl Reservation {
    pub(super) const fn new() -> Self {
        Reservation {
            holder: AtomicUsize::new(0),
            within: AtomicU32::new(0),
            lost: AtomicBool::new(false),
        }
    }
}

impl Giant {
    /// Reserves the lock for the calling thread, which is inside, unless another waits already or the system cannot execute other threads' fences.
    pub fn reserve(&self) {
        if !(fence::register() && fence::heavy()) {
            return;
        }
        self.asymmetric.store(true, Relaxed);
        let (me, _inside) = (me(), self.lock());
        let mine = self.owner.load(Relaxed) == me && !self.is_wanted();
        if mine && self.reservation.holder.load(Relaxed) == 0 {
            self.reservation
                .within
                .store(self.depth.load(Relaxed), Relaxed);
            self.reservation.holder.store(me, Relaxed);
            self.owner.store(RESERVED, Ordering::Release);
        }
    }

    /// Whether no thread but the holder has ever come.
    #[inline]
    pub(super) fn is_reserved(&self) -> bool {
        self.owner.load(Relaxed) == RESERVED
    }

    /// Whether the lock has been reserved and no thread has ended that yet.
    pub(super) fn is_unattended(&self) -> bool {
        self.is_reserved() && !self.reservation.lost.load(Relaxed)
    }

    /// Enters by reservation, if the caller has it.
    #[inline]
    pub(super) fn enter_reserved(&self, me: usize) -> bool {
        let Reservation {
            holder,
            within,
            lost,
        } = &self.reservation;
        if holder.load(Relaxed) != me {
            return false;
        }
        let depth = within.load(Relaxed);
        if depth > 0 {
            within.store(depth + 1, Relaxed);
            return true;
        }
        if lost.load(Relaxed) {
            return false;
        }
        within.store(1, Relaxed);
        fence::light();
        if !lost.load(Relaxed) {
            return true;
        }
        within.store(0, Ordering::Release);
        self.make_free();
        false
    }

    /// Leaves as it was entered by reservation; answers whether it was.
    #[inline]
    pub(super) fn leave_reserved(&self) -> bool {
        if !self.is_reserved() {
            return false;
        }
        let Reservation { within, lost, .. } = &self.reservation;
        let depth = within.load(Relaxed) - 1;
        within.store(depth, Ordering::Release);
        fence::light();
        if depth == 0 && lost.load(Relaxed) {
            self.make_free();
        }
        true
    }

    /// The holder, which is inside, has the lock in the ordinary way from here on.
    pub(super) fn end_own_reservation(&self, me: usize) {
        let Reservation {
            holder,
            within,
            lost,
        } = &self.reservation;
        if self.is_reserved() && holder.load(Relaxed) == me {
            let _inside = self.lock();
            lost.store(true, Relaxed);
            self.depth.store(within.load(Relaxed), Relaxed);
            within.store(0, Relaxed);
            self.owner.store(me, Relaxed);
        }
    }

    /// Another thread wants the lock: the reservation ends, and if its holder is not inside the lock is free.
    pub(super) fn end_reservation(&self) {
        if !self.is_reserved() {
            return;
        }
        let Reservation { within, lost, .. } = &self.reservation;
        let _inside = self.lock();
        if self.is_reserved() && !lost.load(Relaxed) {
            lost.store(true, Relaxed);
            // Without its answer nothing is known of the holder, which then makes the lock free when it comes by.
            if fence::heavy() && within.load(Ordering::Acquire) == 0 {
                self.owner.store(0, Ordering::Release);
            }
        }
    }

    /// The holder has lost the reservation and is outside.
    #[cold]
    fn make_free(&self) {
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
