//! Counters of the calls that hold a lock, for threads that decide whether the lock's engine needs a poll.
//!
//! Only a thread that holds the lock writes the counters, so a write is a load and a store.
//! A reader holds no lock. It may read an old value, and then polls an engine once too often or too late.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The calls that are inside, and the number of all calls so far.
#[derive(Debug)]
pub struct Visits {
    inside: AtomicU32,
    calls: AtomicU32,
}

impl Visits {
    pub const fn new() -> Visits {
        Visits {
            inside: AtomicU32::new(0),
            calls: AtomicU32::new(0),
        }
    }

    /// Counts a call that has just acquired the lock.
    #[inline]
    pub fn enter(&self) {
        self.inside.store(self.inside.load(Relaxed) + 1, Relaxed);
        let calls = self.calls.load(Relaxed).wrapping_add(1);
        self.calls.store(calls, Relaxed);
    }

    /// Counts the end of a call that is about to release the lock.
    /// A call that entered before the counting began is ignored.
    #[inline]
    pub fn leave(&self) {
        let inside = self.inside.load(Relaxed);
        self.inside.store(inside.saturating_sub(1), Relaxed);
    }

    /// Returns true if a call is inside, waiting or not.
    pub fn are_any(&self) -> bool {
        self.inside.load(Relaxed) > 0
    }

    /// Returns the number of calls so far, modulo 2^32.
    pub fn count(&self) -> u32 {
        self.calls.load(Relaxed)
    }
}

impl Default for Visits {
    fn default() -> Visits {
        Visits::new()
    }
}
