//! Lock reservation: at `MPI_THREAD_MULTIPLE`, a thread that calls MPI many times in a row
//! enters the lock by a store.
//!
//! An atomic read-modify-write operation waits for all preceding stores of its core,
//! some of which are to message rings that another core reads.
//! So at each call it costs about as much as the message itself.
//! The thread that initializes MPI gets the first reservation.
//! Afterwards a thread gets the reservation after a number of consecutive acquisitions ([`Streak`]),
//! if no other thread waits for the lock or follows a leader.
//! A thread that waits in MPI gives up its reservation if other threads wait for the lock or yield.
//! Any other thread that needs the lock revokes the reservation.
//! (Biased locking: K. Kawachiya, A. Koseki, T. Onodera, "Lock reservation", OOPSLA 2002.
//! Here the revoking side executes the fence for both sides.)
//!
//! Protocol: while the lock is reserved, `owner` is [`RESERVED`], and only the holder can enter.
//! Each thread has a [`Record`] for all its reservations; `holder` is the record of the latest holder.
//! The holder changes `nesting` of its record and then reads `revoked`.
//! The revoking thread sets `revoked`.
//! The holder usually reads the flag at its next entry or exit, and frees the lock.
//! If the holder does not do so soon, the revoking thread executes a fence and reads `nesting`.
//! The fence between the two steps is [`fence::light`] on the holder's side.
//! The revoking side uses [`fence::heavy_here`]. So at least one side sees the other's store.
//! The revoking thread may see that the holder is outside, and then frees the lock.
//! The holder may see the revocation when it enters or leaves, and then frees the lock.
//! Both may happen: whichever happens first changes `owner` from [`RESERVED`], under `inside`.
//! Only the record's thread clears `revoked`: when it owns the lock and reserves it again, under `inside`.
//! So a thread that is delayed anywhere in its entry sees the revocation of its last reservation.
//! Records are never freed. A thread that ends outside of the lock leaves its record to another thread
//! ([`ReleaseAtThreadEnd`]), and does not use it again. Its reservation remains until another thread revokes it.

use super::GlobalLock;
use mpi_base::clock::now_ns;
use mpi_base::{fence, race_detectors};
use std::cell::Cell;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, Ordering::Relaxed,
};

/// Value of `owner` while the lock is reserved.
/// A thread's identifier ([`me`]) is the address of an aligned structure, so it is never 1.
const RESERVED: usize = 1;

/// Number of spins in which a holder can free a revoked lock itself, before the revoking thread executes a fence: 1 to 4 us.
const GRACE: u32 = 100;

/// Number of spins in which a waiting thread can take the lock that a holder has freed for it.
const OFFER: u32 = 64;

/// The minimum and the maximum number of consecutive acquisitions before a reservation.
const SHORTEST_STREAK: u32 = 8;
const LONGEST_STREAK: u32 = 1 << 16;

/// The maximum duration of a streak in ns per acquisition. A reservation would save less for a thread that calls less often.
const PER_ACQUISITION: u64 = 2_000;

/// The duration of a reservation in ns from which its revocation costs little in comparison.
const LONG_RESERVATION: u64 = 500_000;

/// The state of one thread's reservations of one lock.
#[derive(Debug)]
pub(super) struct Record {
    /// The nesting depth of a holder that has entered by reservation. Only the thread writes this field.
    nesting: AtomicU32,
    /// True if the thread's latest reservation has been revoked or given up.
    revoked: AtomicBool,
    /// True if a heavy fence has followed the revocation.
    fenced: AtomicBool,
    /// True if the record's thread has ended, so that another thread may use the record.
    is_free: AtomicBool,
    /// The address of the lock.
    lock: usize,
}

/// The records of all locks; they are never freed.
static RECORDS: Mutex<Vec<&'static Record>> = Mutex::new(Vec::new());

/// Returns a record that no thread uses.
fn unused_record(lock: &'static GlobalLock) -> &'static Record {
    let mut records = RECORDS.lock().unwrap_or_else(PoisonError::into_inner);
    let lock = std::ptr::from_ref(lock).addr();
    let is_usable =
        |record: &&Record| record.lock == lock && record.is_free.load(Ordering::Acquire);
    if let Some(record) = records.iter().copied().find(is_usable) {
        record.is_free.store(false, Relaxed);
        return record;
    }
    let record: &'static Record = Box::leak(Box::new(Record {
        nesting: AtomicU32::new(0),
        revoked: AtomicBool::new(true),
        fenced: AtomicBool::new(true),
        is_free: AtomicBool::new(false),
        lock,
    }));
    race_detectors::exclude(record);
    records.push(record);
    record
}

/// What a thread knows of itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Caller {
    /// The thread's identifier, see [`me`].
    pub me: usize,
    /// The thread's record, if it has one.
    record: Option<&'static Record>,
}

thread_local! {
    static RECORD: Cell<Option<&'static Record>> = const { Cell::new(None) };
    static AT_END: ReleaseAtThreadEnd = const { ReleaseAtThreadEnd };
}

/// Returns the calling thread's identifier and record.
#[inline]
pub(super) fn caller() -> Caller {
    RECORD.with(|record| Caller {
        me: std::ptr::from_ref(record).addr(),
        record: record.get(),
    })
}

/// Returns a number that is unique among the threads of the process, and greater than 1.
pub fn me() -> usize {
    caller().me
}

/// Leaves the thread's record to other threads when the thread ends.
///
/// This must not acquire a mutex: a forked child and a signal handler may call `exit` while another thread or the interrupted code holds it.
struct ReleaseAtThreadEnd;

impl Drop for ReleaseAtThreadEnd {
    fn drop(&mut self) {
        // A thread that calls `exit` in a callback of MPI is inside, and its exit handlers may call MPI.
        let is_outside = |record: &&Record| record.nesting.load(Relaxed) == 0;
        if let Some(record) = caller().record.filter(is_outside) {
            // Later destructors of this thread that call MPI acquire the lock without a reservation.
            RECORD.set(None);
            record.is_free.store(true, Ordering::Release);
        }
    }
}

/// Consecutive acquisitions of the lock by one thread.
///
/// A reservation that another thread ends soon doubles the number of acquisitions before the next one.
/// One that lasts long, or that its holder gives up to threads that yield, halves the number.
#[derive(Debug)]
struct Streak {
    /// The thread of the last acquisition by an atomic operation. Only the owner uses this field and `since_ns`.
    thread: AtomicUsize,
    since_ns: AtomicU64,
    /// The number of further acquisitions of this thread before a reservation. Only the owner uses this field.
    left: AtomicU32,
    /// The number of acquisitions before a reservation, after the first one of the thread.
    needed: AtomicU32,
}

/// The reservation of the lock for one thread at a time.
#[derive(Debug)]
pub(super) struct Reservation {
    /// The record of the latest holder, or null. Written under `inside`.
    /// The holder's reservation is valid while `owner` is [`RESERVED`].
    holder: AtomicPtr<Record>,
    streak: Streak,
    /// The time of the last reservation.
    since_ns: AtomicU64,
    /// True if [`fence::heavy_here`] works.
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
                since_ns: AtomicU64::new(0),
                left: AtomicU32::new(SHORTEST_STREAK),
                needed: AtomicU32::new(SHORTEST_STREAK),
            },
            since_ns: AtomicU64::new(0),
            is_possible: AtomicBool::new(false),
            was_shared: AtomicBool::new(false),
        }
    }

    /// Returns the record of the latest holder.
    #[inline]
    fn holder(&self) -> Option<&'static Record> {
        // SAFETY: the pointer is null or that of a record, which is never freed.
        unsafe { self.holder.load(Relaxed).as_ref() }
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
        if !fence::heavy_here() {
            return;
        }
        {
            let _inside = self.lock();
            self.sleeps.store(0, Relaxed);
            self.has_heavy_fence.store(true, Relaxed);
            self.asymmetric.store(true, Ordering::Release);
        }
        self.reservation.is_possible.store(true, Relaxed);
        self.reservation.streak.thread.store(me(), Relaxed);
        self.try_reserve();
    }

    /// Counts an acquisition by the calling thread, which has just acquired the lock by an atomic operation.
    /// Reserves the lock after enough consecutive acquisitions.
    #[inline]
    pub(super) fn count_acquisition(&'static self, me: usize) {
        let streak = &self.reservation.streak;
        if streak.thread.load(Relaxed) != me {
            return self.begin_streak(me);
        }
        match streak.left.load(Relaxed) {
            0 => self.end_streak(),
            more => streak.left.store(more - 1, Relaxed),
        }
    }

    #[cold]
    fn begin_streak(&self, me: usize) {
        let reservation = &self.reservation;
        if reservation.streak.thread.load(Relaxed) != 0 {
            reservation.was_shared.store(true, Relaxed);
        }
        reservation.streak.thread.store(me, Relaxed);
        self.restart_streak(now_ns());
    }

    fn restart_streak(&self, now_ns: u64) {
        let reservation = &self.reservation;
        let streak = &reservation.streak;
        streak.left.store(reservation.needed_streak(), Relaxed);
        streak.since_ns.store(now_ns, Relaxed);
    }

    #[cold]
    fn end_streak(&'static self) {
        let reservation = &self.reservation;
        let now = now_ns();
        let took = now.saturating_sub(reservation.streak.since_ns.load(Relaxed));
        let is_fast = took < u64::from(reservation.needed_streak()) * PER_ACQUISITION;
        self.restart_streak(now);
        if is_fast && reservation.is_possible.load(Relaxed) {
            self.try_reserve();
        }
    }

    /// Reserves the lock for the calling thread, which owns it, unless other threads wait or follow.
    fn try_reserve(&'static self) {
        let Caller { me, record } = caller();
        let is_of_this_lock = |record: &&Record| record.lock == std::ptr::from_ref(self).addr();
        let Some(record) = record.filter(is_of_this_lock) else {
            // A thread whose destructors of thread-local values have run gets no record.
            if AT_END.try_with(|_| ()).is_ok() {
                RECORD.set(Some(unused_record(self)));
                self.try_reserve();
            }
            return;
        };
        let now = now_ns();
        let _inside = self.lock();
        let is_mine = self.owner.load(Relaxed) == me && !self.is_wanted();
        // A follower must be notified at each release, and a leader must clear `leader`.
        // An exit by reservation does neither.
        let is_followed = self.followers.load(Relaxed) > 0 || self.leader.load(Relaxed) != 0;
        if !is_mine || is_followed {
            return;
        }
        record.nesting.store(self.depth.load(Relaxed), Relaxed);
        record.fenced.store(false, Relaxed);
        record.revoked.store(false, Relaxed);
        let holder = std::ptr::from_ref(record).cast_mut();
        self.reservation.holder.store(holder, Relaxed);
        self.reservation.since_ns.store(now, Relaxed);
        self.owner.store(RESERVED, Ordering::Release);
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

    /// Returns true if the lock is reserved and no thread has revoked the reservation yet.
    pub(super) fn is_reservation_valid(&self) -> bool {
        let is_revoked = |record: &Record| record.revoked.load(Relaxed);
        self.is_reserved() && !self.reservation.holder().is_none_or(is_revoked)
    }

    /// Enters the lock by reservation, if the caller is the holder.
    #[inline]
    pub(super) fn enter_reserved(&self, caller: Caller) -> bool {
        let holder = self.reservation.holder.load(Relaxed);
        let Some(record) = caller.record.filter(|own| std::ptr::eq(*own, holder)) else {
            return false;
        };
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
        self.free_revoked(record);
        self.offer();
        false
    }

    /// If the lock was entered by reservation, leaves the lock and returns true.
    #[inline]
    pub(super) fn leave_reserved(&self) -> bool {
        if !self.is_reserved() {
            return false;
        }
        // The caller is inside, so it is the holder.
        let Some(record) = self.reservation.holder() else {
            return false;
        };
        let depth = record.nesting.load(Relaxed) - 1;
        record.nesting.store(depth, Ordering::Release);
        fence::light();
        if depth == 0 && record.revoked.load(Relaxed) {
            self.free_revoked(record);
        }
        true
    }

    /// Converts the reservation of the holder, which has entered, to ordinary ownership.
    pub(super) fn convert_reservation(&self, caller: Caller) {
        let is_mine = |record: &&Record| {
            let holder = self.reservation.holder.load(Relaxed);
            std::ptr::eq(*record, holder) && record.nesting.load(Relaxed) > 0
        };
        if !self.is_reserved() {
            return;
        }
        if let Some(record) = caller.record.filter(is_mine) {
            let _inside = self.lock();
            record.revoked.store(true, Relaxed);
            self.depth.store(record.nesting.load(Relaxed), Relaxed);
            record.nesting.store(0, Relaxed);
            self.owner.store(caller.me, Relaxed);
        }
    }

    /// Makes the next reservation earlier, because this one's holder gives it up to threads that yield.
    pub(super) fn reserve_earlier(&self) {
        if self.is_reservation_valid() && !self.is_wanted() {
            let needed = self.reservation.needed_streak();
            self.reservation.set_needed_streak(needed / 2);
        }
    }

    /// Revokes the reservation for another thread. If the holder is outside, the lock becomes free.
    pub(super) fn revoke_reservation(&self) {
        if !self.is_reserved() {
            return;
        }
        self.reservation.was_shared.store(true, Relaxed);
        self.mark_revoked();
        // A holder that calls MPI frees the lock sooner than a heavy fence could.
        for _ in 0..GRACE {
            if !self.is_reserved() {
                return;
            }
            std::hint::spin_loop();
        }
        let _inside = self.lock();
        let holder = self.reservation.holder();
        // If the lock was freed and reserved again, the caller will revoke the new reservation.
        let is_due = |record: &&Record| {
            self.is_reserved() && record.revoked.load(Relaxed) && !record.fenced.load(Relaxed)
        };
        if let Some(record) = holder.filter(is_due) {
            self.fence_revocation(record);
        }
    }

    /// Sets the flag of a valid reservation, and chooses when the next one is made.
    fn mark_revoked(&self) {
        let reservation = &self.reservation;
        let _inside = self.lock();
        if !self.is_reservation_valid() {
            return;
        }
        if let Some(record) = reservation.holder() {
            record.revoked.store(true, Relaxed);
        }
        let lasted = now_ns().saturating_sub(reservation.since_ns.load(Relaxed));
        let needed = reservation.needed_streak();
        reservation.set_needed_streak(match lasted < LONG_RESERVATION {
            true => needed.saturating_mul(2),
            false => needed / 2,
        });
    }

    /// Executes the fence after a revocation, and frees the lock if the holder is outside.
    /// The caller holds `inside`.
    #[cold]
    fn fence_revocation(&self, record: &Record) {
        if !fence::heavy_here() {
            // The state of the holder is unknown, so it frees the lock itself at its next entry or exit.
            // There are no more reservations, and each release executes its own fence.
            self.reservation.is_possible.store(false, Relaxed);
            self.has_heavy_fence.store(false, Relaxed);
            return;
        }
        record.fenced.store(true, Relaxed);
        if record.nesting.load(Ordering::Acquire) == 0 {
            self.owner.store(0, Ordering::Release);
        }
    }

    /// Frees the lock of the calling thread, which is outside and has lost the reservation of its record.
    #[cold]
    fn free_revoked(&self, record: &Record) {
        let inside = self.lock();
        // The revoking thread may have freed the lock, and another thread may have reserved it since.
        let is_holder = std::ptr::eq(self.reservation.holder.load(Relaxed), record);
        if self.is_reserved() && is_holder {
            self.owner.store(0, Ordering::Release);
        }
        drop(inside);
        if self.sleeper.load(Relaxed) {
            self.wake();
        }
    }

    /// Waits until the thread that has revoked the reservation has acquired the lock, up to [`OFFER`] spins.
    #[cold]
    fn offer(&self) {
        let turn = self.turns.load(Relaxed);
        for _ in 0..OFFER {
            if !self.is_wanted() || self.turns.load(Relaxed) != turn {
                return;
            }
            std::hint::spin_loop();
        }
    }
}

/// Returns true if a new record of the calling thread is that of the lock's latest holder.
#[cfg(test)]
pub(super) fn has_record_of_holder(lock: &'static GlobalLock) -> bool {
    let holder = lock.reservation.holder.load(Relaxed);
    std::ptr::eq(unused_record(lock), holder)
}
