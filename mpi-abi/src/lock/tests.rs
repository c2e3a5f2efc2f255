//! Tests of the lock.

use super::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

/// Admits other threads, as the owner, until one has entered and left.
fn start_waiter(lock: &Arc<GlobalLock>) -> std::thread::JoinHandle<()> {
    let done = Arc::new(AtomicBool::new(false));
    let other = {
        let (lock, done) = (lock.clone(), done.clone());
        std::thread::spawn(move || {
            lock.acquire();
            done.store(true, Relaxed);
            lock.release();
        })
    };
    while !done.load(Relaxed) {
        if !lock.yield_to_waiters() {
            std::thread::yield_now();
        }
    }
    other
}

#[test]
fn a_thread_may_take_it_again_and_gives_it_back_as_often() {
    let lock = GlobalLock::new();
    lock.acquire();
    lock.acquire();
    lock.release();
    assert_ne!(lock.owner.load(Relaxed), 0);
    lock.release();
    assert_eq!(lock.owner.load(Relaxed), 0);
}

#[test]
fn only_one_thread_is_inside() {
    let (lock, inside) = (Arc::new(GlobalLock::new()), Arc::new(AtomicU32::new(0)));
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let (lock, inside) = (lock.clone(), inside.clone());
            std::thread::spawn(move || {
                for _ in 0..200 {
                    lock.acquire();
                    assert_eq!(inside.fetch_add(1, Relaxed), 0);
                    inside.fetch_sub(1, Relaxed);
                    lock.yield_to_waiters();
                    lock.release();
                }
            })
        })
        .collect();
    for thread in threads {
        assert!(thread.join().is_ok());
    }
}

#[test]
fn threads_that_come_wait_follow_and_go_all_get_their_turns() {
    const THREADS: u32 = 6;
    let (lock, total) = (Arc::new(GlobalLock::new()), Arc::new(AtomicU32::new(0)));
    let threads: Vec<_> = (0..THREADS)
        .map(|thread| {
            let (lock, total) = (lock.clone(), total.clone());
            std::thread::spawn(move || {
                for round in 0..300 {
                    lock.acquire();
                    // A load and a store, not one atomic operation: only the lock makes it correct.
                    let seen = total.load(Relaxed);
                    if (round + thread) % 3 == 0 {
                        lock.acquire();
                        lock.follow(round % 2 == 0, false);
                        lock.release();
                        lock.yield_to_waiters();
                        total.store(total.load(Relaxed) + 1, Relaxed);
                    } else {
                        total.store(seen + 1, Relaxed);
                    }
                    lock.release();
                    if (round + thread) % 7 == 0 {
                        std::thread::yield_now();
                    }
                }
            })
        })
        .collect();
    for thread in threads {
        assert!(thread.join().is_ok());
    }
    assert_eq!(total.load(Relaxed), THREADS * 300);
    assert_eq!(lock.owner.load(Relaxed), 0);
    assert_eq!(
        (lock.waiters.load(Relaxed), lock.followers.load(Relaxed)),
        (0, 0)
    );
}

#[test]
fn followers_wait_outside_until_the_leader_has_news_or_goes() {
    let (lock, done) = (
        Arc::new(GlobalLock::new()),
        Arc::new(AtomicBool::new(false)),
    );
    lock.acquire();
    assert!(!lock.follow(false, false), "the first to wait leads");
    let other = {
        let (lock, done) = (lock.clone(), done.clone());
        std::thread::spawn(move || {
            lock.acquire();
            let mut followed = 0;
            while !done.load(Relaxed) {
                followed += u32::from(lock.follow(false, false));
                lock.yield_to_waiters();
            }
            lock.release();
            followed
        })
    };
    while lock.followers.load(Relaxed) == 0 {
        lock.yield_to_waiters();
        std::thread::yield_now();
    }
    done.store(true, Relaxed);
    assert!(!lock.follow(true, false), "the leader stays the leader");
    lock.release();
    assert!(other.join().is_ok_and(|followed| followed > 0));
    assert_eq!(
        (lock.leader.load(Relaxed), lock.followers.load(Relaxed)),
        (0, 0)
    );
}

#[test]
fn a_waiting_thread_lets_the_one_in_that_it_waits_for() {
    let lock = Arc::new(GlobalLock::new());
    lock.acquire();
    lock.acquire();
    let other = start_waiter(&lock);
    assert_eq!(lock.depth.load(Relaxed), 2);
    lock.release();
    lock.release();
    assert!(other.join().is_ok());
}

#[test]
fn the_first_thread_has_it_reserved_until_another_comes() {
    let lock = Arc::new(GlobalLock::new());
    lock.acquire();
    lock.reserve();
    if !lock.is_reserved() {
        // The system cannot execute other threads' fences, so the lock is an ordinary one.
        return lock.release();
    }
    lock.acquire();
    lock.release();
    assert!(lock.is_reserved());
    lock.release();
    assert!(lock.is_reserved(), "no second thread has called");
    let other = {
        let lock = lock.clone();
        std::thread::spawn(move || {
            lock.acquire();
            assert_eq!(lock.owner.load(Relaxed), me());
            lock.release();
        })
    };
    assert!(other.join().is_ok());
    assert!(!lock.is_reserved());
    lock.acquire();
    assert_eq!(
        (lock.owner.load(Relaxed), lock.depth.load(Relaxed)),
        (me(), 1)
    );
    lock.release();
    assert_eq!(lock.owner.load(Relaxed), 0);
}

#[test]
fn the_holder_of_the_reservation_hands_over_at_any_nesting_depth() {
    let lock = Arc::new(GlobalLock::new());
    lock.acquire();
    lock.reserve();
    lock.acquire();
    let other = start_waiter(&lock);
    assert_eq!(
        (lock.owner.load(Relaxed), lock.depth.load(Relaxed)),
        (me(), 2)
    );
    lock.release();
    lock.release();
    assert!(other.join().is_ok());
    assert_eq!(lock.owner.load(Relaxed), 0);
}

#[test]
fn a_reservation_is_lost_at_any_moment_and_never_lets_two_in() {
    for round in 0..2_000 {
        let (lock, inside) = (GlobalLock::new(), AtomicU32::new(0));
        let visit = || {
            lock.acquire();
            assert_eq!(inside.fetch_add(1, Relaxed), 0);
            inside.fetch_sub(1, Relaxed);
            lock.release();
        };
        lock.acquire();
        lock.reserve();
        lock.release();
        std::thread::scope(|scope| {
            let others: Vec<_> = (0..2).map(|_| scope.spawn(visit)).collect();
            // From no delay to far beyond the arrival of the others.
            for _ in 0..round {
                visit();
            }
            for other in others {
                assert!(other.join().is_ok());
            }
        });
        assert_eq!(lock.owner.load(Relaxed), 0);
    }
}
