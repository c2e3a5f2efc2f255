//! The order that a flush makes among accesses to mapped memory: what was done before it comes before all that follows, at every rank.
//!
//! Accesses are plain loads and stores. A processor lets later loads come before earlier stores, so a flush after a store is a full fence;
//! one after nothing, and on x86-64 one after loads and atomic instructions alone, is no instruction.

use crate::atomic::{Ordering, fence};
use std::cell::Cell;

/// What one process has done to members' memory since its last flush.
#[derive(Debug, Default)]
pub struct AccessOrder {
    /// Whether something was, before which later accesses of this process may come.
    unordered: Cell<bool>,
}

impl AccessOrder {
    /// This process has stored into memory of a member.
    #[inline(always)]
    pub fn has_stored(&self) {
        self.unordered.set(true);
    }

    /// This process has loaded from memory of a member, or has changed it by an atomic instruction.
    /// On x86-64 no later access comes before either (Intel SDM volume 3, 9.2.2); the model checker knows no processor.
    #[inline(always)]
    pub fn has_loaded(&self) {
        if cfg!(any(loom, not(target_arch = "x86_64"))) {
            self.unordered.set(true);
        }
    }

    /// What this process has done to members' memory comes before all that follows.
    #[inline(always)]
    pub fn flush(&self) {
        if self.unordered.replace(false) {
            fence(Ordering::SeqCst);
        }
    }
}

/// Models of flushes; how they are run is told in [`crate::loom_models`]. All data move by relaxed loads and stores, so that only flushes order them.
#[cfg(all(test, loom))]
mod loom_models {
    use super::AccessOrder;
    use crate::atomic::{AtomicU64, Ordering::Relaxed};
    use crate::loom_models::check;
    use loom::sync::Arc;
    use loom::thread;

    /// One rank's accesses; each flushes for itself.
    fn put(order: &AccessOrder, to: &AtomicU64, value: u64) {
        order.has_stored();
        to.store(value, Relaxed);
    }

    fn get(order: &AccessOrder, from: &AtomicU64) -> u64 {
        order.has_loaded();
        from.load(Relaxed)
    }

    /// Put, flush, and then a word by another way, in which the other rank sees that the data are there.
    #[test]
    fn what_was_put_and_flushed_is_there_for_those_that_are_told() {
        check(|| {
            let words = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
            let there = words.clone();
            let origin = thread::spawn(move || {
                let order = AccessOrder::default();
                put(&order, &there[0], 7);
                order.flush();
                there[1].store(1, Relaxed);
            });
            let order = AccessOrder::default();
            if get(&order, &words[1]) == 1 {
                order.flush();
                assert_eq!(get(&order, &words[0]), 7);
            }
            origin.join().unwrap();
        });
    }

    /// Each of two ranks puts to the other, flushes and then looks whether the other has put: one of them sees it.
    #[test]
    fn of_two_ranks_that_put_flush_and_look_one_sees_the_other() {
        check(|| {
            let words = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
            let run = |me: usize, words: Arc<[AtomicU64; 2]>| {
                let order = AccessOrder::default();
                put(&order, &words[1 - me], 1);
                order.flush();
                get(&order, &words[me])
            };
            let there = words.clone();
            let other = thread::spawn(move || run(1, there));
            let mine = run(0, words);
            let other = other.join().unwrap();
            assert!(mine == 1 || other == 1, "neither saw the other");
        });
    }
}
