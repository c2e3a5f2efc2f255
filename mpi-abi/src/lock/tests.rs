//! Tests of the lock.

use super::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

/// Admits other threads, as the owner, until one has entered and left.
fn let_another_in(giant: &Arc<Giant>) -> std::thread::JoinHandle<()> {
    let done = Arc::new(AtomicBool::new(false));
    let other = {
        let (giant, done) = (giant.clone(), done.clone());
        std::thread::spawn(move || {
            giant.acquire();
            done.store(true, Relaxed);
            giant.release();
        })
    };
    while !done.load(Relaxed) {
        if !giant.relax() {
            std::thread::yield_now();
        }
    }
    other
}

#[test]
fn a_thread_may_take_it_again_and_gives_it_back_as_often() {
    let giant = Giant::new();
    giant.acquire();
    giant.acquire();
    giant.release();
    assert_ne!(giant.owner.load(Relaxed), 0);
    giant.release();
    assert_eq!(giant.owner.load(Relaxed), 0);
}

#[test]
fn only_one_thread_is_inside() {
    let (giant, inside) = (Arc::new(Giant::new()), Arc::new(AtomicU32::new(0)));
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let (giant, inside) = (giant.clone(), inside.clone());
            std::thread::spawn(move || {
                for _ in 0..200 {
                    giant.acquire();
                    assert_eq!(inside.fetch_add(1, Relaxed), 0);
                    inside.fetch_sub(1, Relaxed);
                    giant.relax();
                    giant.release();
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
    let (giant, total) = (Arc::new(Giant::new()), Arc::new(AtomicU32::new(0)));
    let threads: Vec<_> = (0..THREADS)
        .map(|thread| {
            let (giant, total) = (giant.clone(), total.clone());
            std::thread::spawn(move || {
                for round in 0..300 {
                    giant.acquire();
                    // A load and a store, not one atomic operation: only the lock makes it correct.
                    let seen = total.load(Relaxed);
                    if (round + thread) % 3 == 0 {
                        giant.acquire();
                        giant.follow(round % 2 == 0, false);
                        giant.release();
                        giant.relax();
                        total.store(total.load(Relaxed) + 1, Relaxed);
                    } else {
                        total.store(seen + 1, Relaxed);
                    }
                    giant.release();
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
    assert_eq!(giant.owner.load(Relaxed), 0);
    assert_eq!(
        (giant.wanting.load(Relaxed), giant.followers.load(Relaxed)),
        (0, 0)
    );
}

#[test]
fn followers_wait_outside_until_the_leader_has_news_or_goes() {
    let (giant, done) = (Arc::new(Giant::new()), Arc::new(AtomicBool::new(false)));
    giant.acquire();
    assert!(!giant.follow(false, false), "the first to wait leads");
    let other = {
        let (giant, done) = (giant.clone(), done.clone());
        std::thread::spawn(move || {
            giant.acquire();
            let mut followed = 0;
            while !done.load(Relaxed) {
                followed += u32::from(giant.follow(false, false));
                giant.relax();
            }
            giant.release();
            followed
        })
    };
    while giant.followers.load(Relaxed) == 0 {
        giant.relax();
        std::thread::yield_now();
    }
    done.store(true, Relaxed);
    assert!(!giant.follow(true, false), "the leader stays the leader");
    giant.release();
    assert!(other.join().is_ok_and(|followed| followed > 0));
    assert_eq!(
        (giant.leader.load(Relaxed), giant.followers.load(Relaxed)),
        (0, 0)
    );
}

#[test]
fn a_waiting_thread_lets_the_one_in_that_it_waits_for() {
    let giant = Arc::new(Giant::new());
    giant.acquire();
    giant.acquire();
    let other = let_another_in(&giant);
    assert_eq!(giant.depth.load(Relaxed), 2);
    giant.release();
    giant.release();
    assert!(other.join().is_ok());
}

#[test]
fn the_first_thread_has_it_reserved_until_another_comes() {
    let giant = Arc::new(Giant::new());
    giant.acquire();
    giant.reserve();
    if !giant.is_reserved() {
        // The system cannot execute other threads' fences, so the lock is an ordinary one.
        return giant.release();
    }
    giant.acquire();
    giant.release();
    assert!(giant.is_reserved());
    giant.release();
    assert!(giant.is_reserved(), "nobody has come");
    let other = {
        let giant = giant.clone();
        std::thread::spawn(move || {
            giant.acquire();
            assert_eq!(giant.owner.load(Relaxed), me());
            giant.release();
        })
    };
    assert!(other.join().is_ok());
    assert!(!giant.is_reserved());
    giant.acquire();
    assert_eq!(
        (giant.owner.load(Relaxed), giant.depth.load(Relaxed)),
        (me(), 1)
    );
    giant.release();
    assert_eq!(giant.owner.load(Relaxed), 0);
}

#[test]
fn whoever_has_it_reserved_and_is_inside_makes_way_with_all_its_takings() {
    let giant = Arc::new(Giant::new());
    giant.acquire();
    giant.reserve();
    giant.acquire();
    let other = let_another_in(&giant);
    assert_eq!(
        (giant.owner.load(Relaxed), giant.depth.load(Relaxed)),
        (me(), 2)
    );
    giant.release();
    giant.release();
    assert!(other.join().is_ok());
    assert_eq!(giant.owner.load(Relaxed), 0);
}

#[test]
fn a_reservation_is_lost_at_any_moment_and_never_lets_two_in() {
    for round in 0..2_000 {
        let (giant, inside) = (Giant::new(), AtomicU32::new(0));
        let visit = || {
            giant.acquire();
            assert_eq!(inside.fetch_add(1, Relaxed), 0);
            inside.fetch_sub(1, Relaxed);
            giant.release();
        };
        giant.acquire();
        giant.reserve();
        giant.release();
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
        assert_eq!(giant.owner.load(Relaxed), 0);
    }
}
