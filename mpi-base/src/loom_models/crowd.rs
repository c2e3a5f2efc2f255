//! Models of the lock's waiting protocol (`mpi-abi/src/lock/`):
//! threads of one process poll, follow a leader, or become the leader.
//!
//! The lock is in another crate, so the models repeat its operations in the lock's order.

use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

use super::check;
use crate::atomic::{AtomicBool, AtomicU32, Ordering, fence};

/// The shared words by which followers and polling threads communicate.
struct Words {
    leader: AtomicU32,
    yielding: AtomicU32,
    sleeping_followers: AtomicU32,
    leader_called: AtomicBool,
    inside: Mutex<()>,
    followers: [Follower; 2],
}

/// A thread that waits without the lock.
struct Follower {
    released: AtomicBool,
    sleeps: AtomicBool,
    news: Condvar,
}

impl Follower {
    fn new() -> Follower {
        Follower {
            released: AtomicBool::new(false),
            sleeps: AtomicBool::new(false),
            news: Condvar::new(),
        }
    }
}

impl Words {
    fn of_one_yielding_thread() -> Words {
        Words {
            leader: AtomicU32::new(0),
            yielding: AtomicU32::new(1),
            sleeping_followers: AtomicU32::new(0),
            leader_called: AtomicBool::new(false),
            inside: Mutex::new(()),
            followers: [Follower::new(), Follower::new()],
        }
    }

    fn is_polled(&self) -> bool {
        self.leader.load(Ordering::Relaxed) != 0 || self.yielding.load(Ordering::Relaxed) > 0
    }

    /// Sleeps as a follower, which has released the lock; returns when this thread must poll.
    fn sleep_as_follower(&self, follower: &Follower) {
        let mut inside = self.inside.lock().unwrap();
        let sleeping = &self.sleeping_followers;
        follower.sleeps.store(true, Ordering::Relaxed);
        sleeping.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let waits = || !follower.released.load(Ordering::Acquire) && self.is_polled();
        while waits() {
            inside = follower.news.wait(inside).unwrap();
            self.leader_called.store(false, Ordering::Relaxed);
            if !waits() {
                break;
            }
            fence(Ordering::SeqCst);
        }
        follower.sleeps.store(false, Ordering::Relaxed);
        sleeping.fetch_sub(1, Ordering::Relaxed);
    }

    /// Releases one follower, whose wait is complete. The caller owns the lock.
    fn release(&self, follower: &Follower) {
        follower.released.store(true, Ordering::Release);
        fence(Ordering::SeqCst);
        if self.sleeping_followers.load(Ordering::Relaxed) > 0 {
            drop(self.inside.lock().unwrap());
            if follower.sleeps.load(Ordering::Relaxed) {
                follower.news.notify_one();
            }
        }
    }

    /// Ends the call of the last polling thread, which owns the lock.
    fn leave(&self) {
        self.yielding.store(0, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let idle = !self.is_polled() && !self.leader_called.load(Ordering::Relaxed);
        if idle && self.sleeping_followers.load(Ordering::Relaxed) > 0 {
            let inside = self.inside.lock().unwrap();
            let mut followers = self.followers.iter();
            let called = followers.find(|other| other.sleeps.load(Ordering::Relaxed));
            self.leader_called
                .store(called.is_some(), Ordering::Relaxed);
            drop(inside);
            if let Some(called) = called {
                called.news.notify_one();
            }
        }
    }
}

/// SYNC POINT lock.yielding: a sleep has no time limit under loom,
/// so a follower that is never woken blocks the model.
#[test]
fn the_last_yielding_thread_calls_a_follower_to_lead() {
    check(|| {
        let words = Arc::new(Words::of_one_yielding_thread());
        let follower = {
            let words = words.clone();
            thread::spawn(move || words.sleep_as_follower(&words.followers[0]))
        };
        words.leave();
        follower.join().unwrap();
        assert_eq!(words.sleeping_followers.load(Ordering::Relaxed), 0);
    });
}

/// Two threads follow the only yielding thread, and each polls one time after it has woken. The yielding thread executes `end`.
fn with_two_followers(end: impl Fn(&Words) + Send + Sync + 'static) {
    check(move || {
        let words = Arc::new(Words::of_one_yielding_thread());
        let followers = [0, 1].map(|follower| {
            let words = words.clone();
            thread::spawn(move || {
                words.sleep_as_follower(&words.followers[follower]);
                words.leave();
            })
        });
        end(&words);
        for follower in followers {
            follower.join().unwrap();
        }
    });
}

/// SYNC POINT lock.yielding: each of two followers becomes the polling thread in turn.
#[test]
fn a_follower_that_leads_and_leaves_calls_the_next() {
    with_two_followers(Words::leave);
}

/// SYNC POINT lock.yielding: a polling thread releases one follower and leaves;
/// the released one and the one that becomes the leader wake in any order.
#[test]
fn a_released_follower_wakes_and_the_other_becomes_the_leader() {
    with_two_followers(|words| {
        words.release(&words.followers[1]);
        words.leave();
    });
}

/// The words by which the lock's owner and a thread that sleeps for the lock communicate.
struct Ownership {
    owner: AtomicU32,
    sleeper: AtomicBool,
    inside: Mutex<()>,
    free: Condvar,
}

/// SYNC POINT lock.sleeper: the owner releases the lock, executes a fence,
/// and reads whether a thread sleeps.
#[test]
fn a_thread_that_sleeps_for_the_lock_is_woken_by_its_release() {
    check(|| {
        let lock = Arc::new(Ownership {
            owner: AtomicU32::new(1),
            sleeper: AtomicBool::new(false),
            inside: Mutex::new(()),
            free: Condvar::new(),
        });
        let sleeper = {
            let lock = lock.clone();
            thread::spawn(move || {
                let inside = lock.inside.lock().unwrap();
                lock.sleeper.store(true, Ordering::Relaxed);
                fence(Ordering::SeqCst);
                if lock.owner.load(Ordering::Relaxed) != 0 {
                    drop(lock.free.wait(inside).unwrap());
                }
                assert_eq!(lock.owner.load(Ordering::Acquire), 0);
            })
        };
        lock.owner.store(0, Ordering::Release);
        fence(Ordering::SeqCst);
        if lock.sleeper.load(Ordering::Relaxed) {
            let inside = lock.inside.lock().unwrap();
            lock.sleeper.store(false, Ordering::Relaxed);
            drop(inside);
            lock.free.notify_one();
        }
        sleeper.join().unwrap();
    });
}
