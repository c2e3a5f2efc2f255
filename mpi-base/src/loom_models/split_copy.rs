//! A model of a split copy: two threads take pieces of one copy.

use loom::sync::Arc;
use loom::thread;

use super::check;
use crate::atomic::{AtomicU64, Ordering};
use crate::split_copy::{Helping, Pieces};

/// SYNC POINT pieces.taken, pieces.done: each piece is taken by exactly one thread,
/// and the owner waits until its helper has copied its pieces.
#[test]
fn every_piece_is_taken_by_one_and_the_owner_can_wait_for_its_helper() {
    check(|| {
        let shared = Arc::new((Pieces::new(), Helping::new(), AtomicU64::new(0)));
        let first = 1;
        shared.0.offer(first, 2);
        let helper = {
            let shared = shared.clone();
            thread::spawn(move || {
                let (pieces, helping, work) = &*shared;
                helping.begin(0, first);
                let mut taken = 0;
                while pieces.take_back(first).is_some() {
                    taken += 1;
                    work.store(taken, Ordering::Relaxed);
                }
                helping.end();
                taken
            })
        };
        let (pieces, helping, work) = &*shared;
        let mut mine = 0;
        while pieces.take_front(first, 2).is_some() {
            mine += 1;
        }
        while helping.is_with(0, first) {
            thread::yield_now();
        }
        // All pieces that the helper took are complete at this point.
        assert_eq!(mine + work.load(Ordering::Relaxed), 2);
        // The helper still knows the first offer; it must not take a piece of the second offer.
        pieces.offer(2, 1);
        assert_eq!(pieces.take_front(2, 1), Some(0));
        assert_eq!(mine + helper.join().unwrap(), 2);
    });
}
