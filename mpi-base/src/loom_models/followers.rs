//! Models of the followers (`mpi-abi/src/lock/following.rs` and `followers.rs`): the leader calls the conditions of threads that wait without the lock,
//! and a leader that leaves wakes one of them.
//!
//! The lock is in another crate, so the models repeat its operations in the lock's order.
//! loom reports an access to the list or to a follower that the lock does not order.

use loom::cell::UnsafeCell;
use loom::sync::{Arc, Condvar, Mutex, MutexGuard};
use loom::thread;

use super::check;
use crate::atomic::{AtomicBool, AtomicU32, Ordering, fence};

/// The number of threads that may follow.
const THREADS: usize = 2;

/// The lock and the list of its followers, by their numbers.
struct Process {
    lock: Mutex<()>,
    /// True while a thread leads. At the start, the main thread of the model leads.
    leads: AtomicBool,
    sleeping_followers: AtomicU32,
    leader_called: AtomicBool,
    inside: Mutex<()>,
    following: UnsafeCell<Vec<usize>>,
    followers: [Follower; THREADS],
    /// The number of messages that polls have found. Accessed under the lock.
    found: UnsafeCell<u32>,
}

struct Follower {
    released: AtomicBool,
    sleeps: AtomicBool,
    news: Condvar,
    /// The number of messages that end the wait; 0 after the wait, when the value on the thread's stack is gone.
    awaits: UnsafeCell<u32>,
}

impl Process {
    fn with_leader() -> Arc<Process> {
        let follower = || Follower {
            released: AtomicBool::new(false),
            sleeps: AtomicBool::new(false),
            news: Condvar::new(),
            awaits: UnsafeCell::new(0),
        };
        Arc::new(Process {
            lock: Mutex::new(()),
            leads: AtomicBool::new(true),
            sleeping_followers: AtomicU32::new(0),
            leader_called: AtomicBool::new(false),
            inside: Mutex::new(()),
            following: UnsafeCell::new(Vec::new()),
            followers: [follower(), follower()],
            found: UnsafeCell::new(0),
        })
    }

    /// Returns the number of messages found so far. The caller has the lock.
    fn found(&self) -> u32 {
        // SAFETY: the caller has the lock.
        self.found.with(|found| unsafe { *found })
    }

    /// A poll that finds a number of messages. The caller has the lock.
    fn poll(&self, messages: u32) {
        // SAFETY: the caller has the lock.
        self.found.with_mut(|found| unsafe { *found += messages });
    }

    /// The leader polls, finds a message and releases the followers whose conditions hold.
    fn lead(&self) {
        let _lock = self.lock.lock().unwrap();
        self.poll(1);
        self.notify();
    }

    /// A whole call of a thread that waits for a number of messages: it follows while another thread leads, and leads otherwise.
    fn wait_for(&self, (me, awaits): (usize, u32)) {
        let mut lock = self.lock.lock().unwrap();
        let mut leads = false;
        while self.found() < awaits {
            if leads || !self.leads.load(Ordering::Relaxed) {
                leads = true;
                self.leads.store(true, Ordering::Relaxed);
                self.poll(1);
                self.notify();
            } else {
                lock = self.follow((me, awaits), lock, || self.sleep(me));
            }
        }
        self.leave(leads);
    }

    /// Ends a call; wakes one follower if no thread leads then. The caller has the lock.
    fn leave(&self, leads: bool) {
        if leads {
            self.leads.store(false, Ordering::Relaxed);
        }
        fence(Ordering::SeqCst);
        let idle =
            !self.leads.load(Ordering::Relaxed) && !self.leader_called.load(Ordering::Relaxed);
        if idle && self.sleeping_followers.load(Ordering::Relaxed) > 0 {
            let inside = self.inside.lock().unwrap();
            let mut followers = self.in_list().into_iter().map(|of| &self.followers[of]);
            let called = followers.find(|other| other.sleeps.load(Ordering::Relaxed));
            self.leader_called
                .store(called.is_some(), Ordering::Relaxed);
            drop(inside);
            if let Some(called) = called {
                called.news.notify_one();
            }
        }
    }

    fn in_list(&self) -> Vec<usize> {
        // SAFETY: the caller has the lock.
        self.following.with(|all| unsafe { (*all).clone() })
    }

    fn waits(&self, me: usize) -> bool {
        !self.followers[me].released.load(Ordering::Acquire) && self.leads.load(Ordering::Relaxed)
    }

    /// Executes `wait` without the lock, while the thread is in the list and waits for a number of messages.
    fn follow<'a>(
        &'a self,
        (me, awaits): (usize, u32),
        lock: MutexGuard<'a, ()>,
        wait: impl FnOnce(),
    ) -> MutexGuard<'a, ()> {
        let follower = &self.followers[me];
        follower.released.store(false, Ordering::Relaxed);
        // SAFETY: this thread has the lock, and the follower is not in the list.
        follower.awaits.with_mut(|of| unsafe { *of = awaits });
        // SAFETY: this thread has the lock.
        self.following.with_mut(|all| unsafe { (*all).push(me) });
        drop(lock);
        wait();
        let lock = self.lock.lock().unwrap();
        let remove = |all: &mut Vec<usize>| all.retain(|other| *other != me);
        // SAFETY: this thread has the lock.
        self.following.with_mut(|all| remove(unsafe { &mut *all }));
        // SAFETY: the follower is in the list no more.
        follower.awaits.with_mut(|of| unsafe { *of = 0 });
        lock
    }

    /// Sleeps as a follower, without a time limit.
    fn sleep(&self, me: usize) {
        let follower = &self.followers[me];
        let mut inside = self.inside.lock().unwrap();
        follower.sleeps.store(true, Ordering::Relaxed);
        self.sleeping_followers.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        while self.waits(me) {
            inside = follower.news.wait(inside).unwrap();
            self.leader_called.store(false, Ordering::Relaxed);
            if !self.waits(me) {
                break;
            }
            fence(Ordering::SeqCst);
        }
        follower.sleeps.store(false, Ordering::Relaxed);
        self.sleeping_followers.fetch_sub(1, Ordering::Relaxed);
    }

    /// Releases the followers whose conditions hold. The caller has the lock.
    fn notify(&self) {
        let mut any = false;
        for other in self.in_list() {
            let follower = &self.followers[other];
            // SAFETY: the caller has the lock, and the follower is in the list.
            let awaits = follower.awaits.with(|of| unsafe { *of });
            assert_ne!(awaits, 0, "a follower that has ended its wait");
            if !follower.released.load(Ordering::Relaxed) && self.found() >= awaits {
                follower.released.store(true, Ordering::Release);
                any = true;
            }
        }
        fence(Ordering::SeqCst);
        if any && self.sleeping_followers.load(Ordering::Relaxed) > 0 {
            drop(self.inside.lock().unwrap());
            for other in self.in_list() {
                let follower = &self.followers[other];
                if follower.released.load(Ordering::Relaxed)
                    && follower.sleeps.load(Ordering::Relaxed)
                {
                    follower.news.notify_one();
                }
            }
        }
    }
}

/// SYNC POINT lock.following: a follower that sleeps is woken when the leader finds its message,
/// while another one spins and ends its wait by its time limit at any moment.
#[test]
fn the_leader_wakes_a_sleeping_follower_while_another_comes_and_goes() {
    check(|| {
        let process = Process::with_leader();
        let sleeping = {
            let process = process.clone();
            thread::spawn(move || {
                let mut lock = process.lock.lock().unwrap();
                while process.found() < 1 {
                    lock = process.follow((0, 1), lock, || process.sleep(0));
                }
            })
        };
        let spinning = {
            let process = process.clone();
            thread::spawn(move || {
                let lock = process.lock.lock().unwrap();
                let spin = || {
                    process.waits(1);
                };
                drop(process.follow((1, 2), lock, spin));
            })
        };
        process.lead();
        sleeping.join().unwrap();
        spinning.join().unwrap();
        let _lock = process.lock.lock().unwrap();
        assert!(process.in_list().is_empty());
    });
}

/// SYNC POINT lock.following: a follower whose time limit has ended its wait before its message sleeps in its next wait until it is released.
#[test]
fn a_follower_waits_again_after_its_time_limit_and_is_released() {
    check(|| {
        let process = Process::with_leader();
        let follower = {
            let process = process.clone();
            thread::spawn(move || {
                let mut lock = process.lock.lock().unwrap();
                lock = process.follow((0, 2), lock, || {});
                while process.found() < 2 {
                    lock = process.follow((0, 2), lock, || process.sleep(0));
                }
            })
        };
        process.lead();
        process.lead();
        follower.join().unwrap();
    });
}

/// The leader finds a number of messages in its last poll and leaves without calling the conditions.
/// Two threads follow it. One of them waits for one message, the other for two.
fn leader_leaves_after(messages: u32) {
    check(move || {
        let process = Process::with_leader();
        let followers = [(0, 1), (1, 2)].map(|follower| {
            let process = process.clone();
            thread::spawn(move || process.wait_for(follower))
        });
        let lock = process.lock.lock().unwrap();
        process.poll(messages);
        process.leave(true);
        drop(lock);
        for follower in followers {
            follower.join().unwrap();
        }
        let _lock = process.lock.lock().unwrap();
        assert!(process.in_list().is_empty() && !process.leads.load(Ordering::Relaxed));
    });
}

/// SYNC POINT lock.following: each follower whose message was found wakes, and wakes the next one when it leaves.
#[test]
fn a_leader_that_leaves_wakes_the_followers_whose_messages_it_has_found() {
    leader_leaves_after(2);
}

/// SYNC POINT lock.following: one of the followers leads, and finds the messages.
#[test]
fn a_leader_that_leaves_before_the_messages_wakes_a_follower_to_lead() {
    leader_leaves_after(0);
}
