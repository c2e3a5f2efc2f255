//! Models of the lock's reservation (`mpi-abi/src/lock/reserved.rs`):
//! a thread enters by a store, and another thread revokes the reservation.
//!
//! The lock is in another crate, so the models repeat its operations in the lock's order.
//! loom has no remote fences, so both sides execute their own.

use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

use super::check;
use crate::atomic::{AtomicBool, AtomicU32, Ordering, Ordering::Relaxed, fence};

const RESERVED: u32 = 1;

/// The record of one thread.
struct Record {
    nesting: AtomicU32,
    revoked: AtomicBool,
}

/// The lock's words for two threads, 0 and 1, whose identifiers are 2 and 3.
struct Words {
    owner: AtomicU32,
    holder: AtomicU32,
    records: [Record; 2],
    inside: Mutex<()>,
    sleeper: AtomicBool,
    free: Condvar,
    /// The data that the lock protects.
    value: AtomicU32,
}

impl Words {
    /// Returns a lock that is reserved for thread 0, which is outside.
    fn reserved_for_thread_0() -> Words {
        Words {
            owner: AtomicU32::new(RESERVED),
            holder: AtomicU32::new(0),
            records: [false, true].map(|revoked| Record {
                nesting: AtomicU32::new(0),
                revoked: AtomicBool::new(revoked),
            }),
            inside: Mutex::new(()),
            sleeper: AtomicBool::new(false),
            free: Condvar::new(),
            value: AtomicU32::new(0),
        }
    }

    fn enters_reserved(&self, me: u32) -> bool {
        if self.holder.load(Relaxed) != me {
            return false;
        }
        let record = &self.records[me as usize];
        if record.revoked.load(Relaxed) {
            return false;
        }
        record.nesting.store(1, Relaxed);
        fence(Ordering::SeqCst);
        if !record.revoked.load(Relaxed) {
            return true;
        }
        record.nesting.store(0, Ordering::Release);
        self.free_revoked(me);
        false
    }

    fn leave(&self, me: u32) {
        if self.owner.load(Relaxed) != RESERVED {
            self.owner.store(0, Ordering::Release);
            return;
        }
        let record = &self.records[me as usize];
        record.nesting.store(0, Ordering::Release);
        fence(Ordering::SeqCst);
        if record.revoked.load(Relaxed) {
            self.free_revoked(me);
        }
    }

    fn free_revoked(&self, me: u32) {
        let inside = self.inside.lock().unwrap();
        if self.owner.load(Relaxed) == RESERVED && self.holder.load(Relaxed) == me {
            self.owner.store(0, Ordering::Release);
        }
        drop(inside);
        if self.sleeper.load(Relaxed) {
            drop(self.inside.lock().unwrap());
            self.free.notify_one();
        }
    }

    /// Sleeps until the lock is free, unless it is free or a new reservation must be revoked.
    fn sleep(&self) {
        let inside = self.inside.lock().unwrap();
        self.sleeper.store(true, Relaxed);
        fence(Ordering::SeqCst);
        let record = &self.records[self.holder.load(Relaxed) as usize];
        let owner = self.owner.load(Relaxed);
        let is_valid = owner == RESERVED && !record.revoked.load(Relaxed);
        if owner != 0 && !is_valid {
            drop(self.free.wait(inside).unwrap());
        }
    }

    /// Sets the flag, and then frees the lock if the holder is outside.
    /// Between the two critical sections, the holder may free the lock and another thread may reserve it.
    fn revoke(&self) {
        let record_of_holder = || &self.records[self.holder.load(Relaxed) as usize];
        {
            let _inside = self.inside.lock().unwrap();
            if self.owner.load(Relaxed) == RESERVED {
                record_of_holder().revoked.store(true, Relaxed);
            }
        }
        let _inside = self.inside.lock().unwrap();
        let record = record_of_holder();
        if self.owner.load(Relaxed) == RESERVED && record.revoked.load(Relaxed) {
            fence(Ordering::SeqCst);
            if record.nesting.load(Ordering::Acquire) == 0 {
                self.owner.store(0, Ordering::Release);
            }
        }
    }

    /// Enters by reservation or as the ordinary owner.
    fn enter(&self, me: u32) {
        if self.enters_reserved(me) {
            return;
        }
        while (self.owner)
            .compare_exchange(0, me + 2, Ordering::Acquire, Relaxed)
            .is_err()
        {
            if self.owner.load(Relaxed) == RESERVED {
                self.revoke();
            }
            thread::yield_now();
        }
    }

    /// Reserves the lock for the calling thread, its ordinary owner, which is inside.
    fn reserve(&self, me: u32) {
        let _inside = self.inside.lock().unwrap();
        let record = &self.records[me as usize];
        record.nesting.store(1, Relaxed);
        record.revoked.store(false, Relaxed);
        self.holder.store(me, Relaxed);
        self.owner.store(RESERVED, Ordering::Release);
    }

    /// Makes one call, which increments the protected value without an atomic operation.
    fn call(&self, me: u32, reserves: bool) {
        self.enter(me);
        let before = self.value.load(Relaxed);
        if reserves && self.owner.load(Relaxed) == me + 2 {
            self.reserve(me);
        }
        self.value.store(before + 1, Relaxed);
        self.leave(me);
    }
}

/// SYNC POINT lock.reserved: the holder and the revoking thread are never inside at the same time,
/// and each sees the values of the other.
#[test]
fn a_revoked_reservation_lets_one_thread_in_at_a_time() {
    check(|| {
        let words = Arc::new(Words::reserved_for_thread_0());
        let other = {
            let words = words.clone();
            thread::spawn(move || words.call(1, false))
        };
        words.call(0, false);
        words.call(0, false);
        other.join().unwrap();
        assert_eq!(words.value.load(Relaxed), 3);
        // A holder that has seen no revocation has left the lock reserved.
        assert!([0, RESERVED].contains(&words.owner.load(Relaxed)));
    });
}

/// SYNC POINT lock.reserved: the revoking thread reserves the lock for itself,
/// while the holder of the earlier reservation is anywhere in its entry or exit.
#[test]
fn a_thread_that_reserves_after_a_revocation_excludes_the_earlier_holder() {
    check(|| {
        let words = Arc::new(Words::reserved_for_thread_0());
        let other = {
            let words = words.clone();
            thread::spawn(move || {
                words.call(1, true);
                words.call(1, false);
            })
        };
        words.call(0, false);
        other.join().unwrap();
        assert_eq!(words.value.load(Relaxed), 3);
    });
}

/// SYNC POINT lock.reserved: a thread that sleeps after its revocation is woken by the holder's exit.
/// A sleep has no time limit under loom, so a lost wake-up blocks the model.
#[test]
fn a_holder_that_leaves_wakes_the_thread_that_has_revoked_its_reservation() {
    check(|| {
        let words = Arc::new(Words::reserved_for_thread_0());
        let other = {
            let words = words.clone();
            thread::spawn(move || {
                words.revoke();
                while (words.owner)
                    .compare_exchange(0, 3, Ordering::Acquire, Relaxed)
                    .is_err()
                {
                    words.sleep();
                }
            })
        };
        if words.enters_reserved(0) {
            words.leave(0);
        }
        other.join().unwrap();
        assert_eq!(words.owner.load(Relaxed), 3);
    });
}
