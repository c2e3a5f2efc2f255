//! Memory ordering of flushes: accesses to mapped window memory before a flush precede
//! all accesses after the flush, for every rank.
//!
//! Accesses are plain loads and stores. A processor may execute later loads before earlier stores,
//! so a flush after a store is a full fence.
//! A flush without preceding accesses executes no instruction.
//! On x86-64, a flush after only loads and atomic instructions executes none either.

use crate::atomic::{Ordering, fence};
use std::cell::Cell;

/// Tracks whether one process has accesses to members' memory that a flush must order.
#[derive(Debug, Default)]
pub struct AccessOrder {
    /// True after an access that later accesses of this process may overtake.
    unordered: Cell<bool>,
}

impl AccessOrder {
    /// Records that this process has stored to a member's memory.
    #[inline(always)]
    pub fn has_stored(&self) {
        self.unordered.set(true);
    }

    /// Records that this process has loaded from a member's memory,
    /// or has changed it with an atomic instruction.
    /// On x86-64 no later access overtakes these (Intel SDM volume 3, 9.2.2);
    /// under loom they count as unordered, because loom does not model a processor.
    #[inline(always)]
    pub fn has_loaded(&self) {
        if cfg!(any(loom, not(target_arch = "x86_64"))) {
            self.unordered.set(true);
        }
    }

    /// Orders this process's earlier accesses to members' memory before all later accesses.
    #[inline(always)]
    pub fn flush(&self) {
        if self.unordered.replace(false) {
            fence(Ordering::SeqCst);
        }
    }
}

/// Models of [`AccessOrder`]; [`crate::loom_models`] describes how to run them.
/// All data are accessed with relaxed loads and stores, so only flushes order them.
#[cfg(all(test, loom))]
mod loom_models {
    use super::AccessOrder;
    use crate::atomic::{AtomicU64, Ordering::Relaxed};
    use crate::loom_models::check;
    use loom::sync::Arc;
    use loom::thread;

    /// Stores a value into a member's memory and flushes.
    fn put(order: &AccessOrder, to: &AtomicU64, value: u64) {
        order.has_stored();
        to.store(value, Relaxed);
    }

    fn get(order: &AccessOrder, from: &AtomicU64) -> u64 {
        order.has_loaded();
        from.load(Relaxed)
    }

    /// A rank puts, flushes, and sets a flag elsewhere: a rank that sees the flag also sees the data.
    #[test]
    fn data_put_and_flushed_are_visible_to_notified_ranks() {
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

    /// Two ranks each put to the other, flush, and then read what the other has put:
    /// at least one sees the other's value.
    #[test]
    fn of_two_ranks_that_put_flush_and_get_one_sees_the_other() {
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
