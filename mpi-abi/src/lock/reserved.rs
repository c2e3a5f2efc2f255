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

/// Maximum number of locks for which a thread has a record each: those of all lanes.
pub(super) const LOCKS: usize = 8;

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
    /// The thread's records, by the number of the lock.
    static OWN: [Cell<Option<&'static Record>>; LOCKS] = const { [const { Cell::new(None) }; LOCKS] };
    static AT_END: ReleaseAtThreadEnd = const { ReleaseAtThreadEnd };
}

/// Returns the calling thread's identifier and its record for a lock.
#[inline]
pub(super) fn caller(lock: &GlobalLock) -> Caller {
    OWN.with(|own| Caller {
        me: std::ptr::from_ref(own).addr(),
        record: own[lock.number % LOCKS].get(),
    })
}

/// Returns true if the calling thread is inside a lock, by a reservation or as the owner.
pub(super) fn is_inside(lock: &GlobalLock, caller: Caller) -> bool {
    let is_entered = |record: &Record| {
        let holder = lock.reservation.holder.load(Relaxed);
        std::ptr::eq(record, holder) && record.nesting.load(Relaxed) > 0
    };
    lock.owner.load(Relaxed) == caller.me || caller.record.is_some_and(is_entered)
}

/// Returns a number that is unique among the threads of the process, and greater than 1.
pub fn me() -> usize {
    OWN.with(|own| std::ptr::from_ref(own).addr())
}

/// Leaves the thread's record to other threads when the thread ends.
///
/// This must not acquire a mutex: a forked child and a signal handler may call `exit` while another thread or the interrupted code holds it.
struct ReleaseAtThreadEnd;

impl Drop for ReleaseAtThreadEnd {
    fn drop(&mut self) {
        // A thread that calls `exit` in a callback of MPI is inside, and its exit handlers may call MPI.
        let is_outside = |record: &&Record| record.nesting.load(Relaxed) == 0;
        OWN.with(|own| {
            for own in own {
                if let Some(record) = own.get().filter(is_outside) {
                    // Later destructors of this thread that call MPI acquire the lock without a reservation.
                    own.set(None);
                    record.is_free.store(true, Ordering::Release);
                }
            }
        });
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

    /// Counts an acquisition by a thread that owns the lock. Returns true if the thread should reserve the lock.
    #[inline]
    fn is_due_after_acquisition(&self, me: usize) -> bool {
        if self.streak.thread.load(Relaxed) != me {
            self.begin_streak(me);
            return false;
        }
        let left = self.streak.left.load(Relaxed);
        if left == 0 {
            return self.is_streak_fast() && self.is_possible.load(Relaxed);
        }
        self.streak.left.store(left - 1, Relaxed);
        false
    }

    #[cold]
    fn begin_streak(&self, me: usize) {
        if self.streak.thread.load(Relaxed) != 0 {
            self.was_shared.store(true, Relaxed);
        }
        self.streak.thread.store(me, Relaxed);
        self.streak.restart(now_ns());
    }

    /// Ends a streak and begins the next one of the same thread. Returns true if the acquisitions were frequent.
    #[cold]
    fn is_streak_fast(&self) -> bool {
        let now = now_ns();
        let took = now.saturating_sub(self.streak.since_ns.load(Relaxed));
        let needed = self.streak.needed.load(Relaxed);
        self.streak.restart(now);
        took < u64::from(needed) * PER_ACQUISITION
    }

    /// Makes the next reservation earlier, because this one's holder gives it up to threads that yield.
    pub(super) fn come_earlier(&self) {
        self.streak.need(self.streak.needed.load(Relaxed) / 2);
    }

    /// Sets the flag of the holder, and chooses when the next reservation is made. The caller holds `inside`.
    fn revoke(&self) {
        if let Some(record) = self.holder() {
            record.revoked.store(true, Relaxed);
        }
        let lasted = now_ns().saturating_sub(self.since_ns.load(Relaxed));
        let needed = self.streak.needed.load(Relaxed);
        self.streak.need(match lasted < LONG_RESERVATION {
            true => needed.saturating_mul(2),
            false => needed / 2,
        });
    }
}

impl Streak {
    fn restart(&self, now_ns: u64) {
        self.left.store(self.needed.load(Relaxed), Relaxed);
        self.since_ns.store(now_ns, Relaxed);
    }

    fn need(&self, acquisitions: u32) {
        let needed = acquisitions.clamp(SHORTEST_STREAK, LONGEST_STREAK);
        self.needed.store(needed, Relaxed);
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
        if self.reservation.is_due_after_acquisition(me) {
            self.try_reserve();
        }
    }

    /// Reserves the lock for the calling thread, which owns it, unless other threads wait or follow.
    fn try_reserve(&'static self) {
        let Caller { me, record } = caller(self);
        let is_of_this_lock = |record: &&Record| record.lock == std::ptr::from_ref(self).addr();
        let Some(record) = record.filter(is_of_this_lock) else {
            // A thread whose destructors of thread-local values have run gets no record.
            if AT_END.try_with(|_| ()).is_ok() {
                OWN.with(|own| own[self.number % LOCKS].set(Some(unused_record(self))));
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
        offer(self);
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
        race_detectors::releasing(self);
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

    /// Revokes the reservation for another thread. If the holder is outside, the lock becomes free.
    pub(super) fn revoke_reservation(&self) {
        if !self.is_reserved() {
            return;
        }
        self.reservation.was_shared.store(true, Relaxed);
        {
            let _inside = self.lock();
            if self.is_reservation_valid() {
                self.reservation.revoke();
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
        let holder = self.reservation.holder();
        // If the lock was freed and reserved again, the caller will revoke the new reservation.
        let is_due = |record: &&Record| {
            self.is_reserved() && record.revoked.load(Relaxed) && !record.fenced.load(Relaxed)
        };
        let Some(record) = holder.filter(is_due) else {
            return;
        };
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
}

/// Waits until the thread that has revoked a reservation has acquired the lock, up to [`OFFER`] spins.
#[cold]
fn offer(lock: &GlobalLock) {
    let turn = lock.turns.load(Relaxed);
    for _ in 0..OFFER {
        if !lock.is_wanted() || lock.turns.load(Relaxed) != turn {
            return;
        }
        std::hint::spin_loop();
    }
}

/// Returns true if a new record of the calling thread is that of the lock's latest holder.
#[cfg(test)]
pub(super) fn has_record_of_holder(lock: &'static GlobalLock) -> bool {
    let holder = lock.reservation.holder.load(Relaxed);
    std::ptr::eq(unused_record(lock), holder)
}
