//! Panics of threads that follow: each stays in the call of its own thread.

use super::super::followers::Follower;
use super::{new_lock, tired};
use crate::lock::following::{Listed, complete_and_released};
use crate::lock::{GlobalLock, me};
use mpi_core::engine::{Polled, ThreadStep};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Panics without a message on the standard error stream.
fn fail(text: &'static str) -> ! {
    resume_unwind(Box::new(text))
}

/// Runs `f` under the lock. Returns the text of its panic, or `None` if it has not panicked.
fn panic_of(lock: &'static GlobalLock, f: impl FnOnce()) -> Option<&'static str> {
    lock.acquire();
    let result = catch_unwind(AssertUnwindSafe(f));
    assert!(lock.holds(me()), "the thread is inside again");
    lock.release();
    result.err()?.downcast_ref().copied()
}

fn wait_until_followed(lock: &'static GlobalLock) {
    while lock.followers.load(Relaxed) == 0 {
        lock.yield_to_waiters();
        std::thread::yield_now();
    }
}

#[test]
fn a_condition_that_panics_in_the_leader_fails_the_call_of_its_own_thread() {
    let (lock, is_broken) = (new_lock(), Arc::new(AtomicBool::new(false)));
    lock.acquire();
    lock.wait_step(tired(false));
    let other = {
        let is_broken = is_broken.clone();
        std::thread::spawn(move || {
            let wait = || {
                let mut condition = || match is_broken.load(Relaxed) {
                    true => fail("a broken condition"),
                    false => false,
                };
                let awaits = Polled {
                    awaits: Some(&mut condition),
                    ..tired(false)
                };
                lock.wait_step(awaits);
            };
            // Without a panic, a follower's own poll would end its step after 100 ms.
            (0..1000).find_map(|_| panic_of(lock, wait))
        })
    };
    wait_until_followed(lock);
    is_broken.store(true, Relaxed);
    let steps = [true, false].map(|busy| lock.wait_step(tired(busy)));
    assert_eq!(steps, [ThreadStep::Alone; 2], "the leader goes on");
    lock.release();
    assert_eq!(other.join().ok().flatten(), Some("a broken condition"));
    assert_eq!(lock.followers.load(Relaxed), 0);
}

#[test]
fn a_follower_that_panics_leaves_the_list_and_keeps_the_lock_at_its_depth() {
    let lock = new_lock();
    let other = std::thread::spawn(move || {
        let follower = Follower::new(None);
        let wait = || {
            lock.acquire();
            Listed::run(lock, me(), &follower, || -> () { fail("a broken wait") });
        };
        let panic = panic_of(lock, wait);
        // The panic has left one level of the lock to this thread.
        assert_eq!(lock.depth.load(Relaxed), 1);
        assert!(complete_and_released(lock).is_empty());
        lock.release();
        panic
    });
    assert_eq!(other.join().ok().flatten(), Some("a broken wait"));
    lock.acquire();
    lock.wait_step(tired(true));
    lock.wait_step(tired(false));
    lock.release();
    assert_eq!(lock.followers.load(Relaxed), 0);
}
