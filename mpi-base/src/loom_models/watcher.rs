//! Models of the watcher's role: while a thread sleeps, some thread has the role or is woken for it.
//!
//! A sleep has no timeout under loom, so a lost call blocks the model.

use loom::sync::{Arc, Mutex};
use loom::thread;

use super::check;
use crate::atomic::{AtomicU64, Ordering};
use crate::doorbell::{Doorbell, NAP, SLEEPING};
use crate::watcher::Role;

/// The threads of the models, each in the lane of its number.
const LANES: usize = 3;

struct Process {
    role: Role,
    doorbells: [Doorbell; LANES],
}

impl Process {
    /// Returns a process whose lane 0 has the role.
    fn watched_by_lane_0() -> Arc<Process> {
        let process = Process {
            role: Role::new(),
            doorbells: [Doorbell::new(), Doorbell::new(), Doorbell::new()],
        };
        assert!(process.role.claim(0));
        Arc::new(process)
    }

    fn sleep(&self, lane: usize) {
        self.doorbells[lane].sleep(NAP, || self.role.is_vacant());
    }

    /// Sleeps in a lane until the lane has the role.
    fn become_watcher(&self, lane: usize) {
        while !self.role.claim(lane) {
            self.sleep(lane);
        }
    }

    fn leave(&self, lane: usize) {
        if self.role.must_pass_on(lane) {
            let others = (0..LANES).filter(|other| *other != lane);
            self.role
                .pass_on(lane, others.map(|other| &self.doorbells[other]));
        }
    }
}

/// SYNC POINT watcher.vacant: a watcher that leaves wakes a sleeping thread, which has the role afterwards.
#[test]
fn each_sleeping_thread_becomes_the_watcher_in_turn() {
    check(|| {
        let process = Process::watched_by_lane_0();
        let threads = [1, 2].map(|lane| {
            let process = process.clone();
            thread::spawn(move || {
                process.become_watcher(lane);
                process.leave(lane);
            })
        });
        process.leave(0);
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

/// SYNC POINT watcher.call: a thread that was woken for the role and leaves wakes the next one.
#[test]
fn a_thread_that_was_woken_and_leaves_wakes_the_next() {
    check(|| {
        let process = Process::watched_by_lane_0();
        let leaving = {
            let process = process.clone();
            thread::spawn(move || {
                process.sleep(1);
                process.leave(1);
            })
        };
        let sleeping = {
            let process = process.clone();
            thread::spawn(move || {
                process.become_watcher(2);
                process.leave(2);
            })
        };
        process.leave(0);
        leaving.join().unwrap();
        sleeping.join().unwrap();
    });
}

/// SYNC POINT watcher.call: a thread that passes by while the role is called wakes one more thread, or vacates the role.
#[test]
fn a_thread_that_passes_by_does_not_keep_the_role_from_the_woken_one() {
    check(|| {
        let process = Process::watched_by_lane_0();
        let sleeping = {
            let process = process.clone();
            thread::spawn(move || {
                process.become_watcher(1);
                thread::yield_now();
                assert!(
                    process.role.is_of(1),
                    "only the lane's thread vacates the role"
                );
                process.leave(1);
            })
        };
        let passing = {
            let process = process.clone();
            thread::spawn(move || process.leave(2))
        };
        process.leave(0);
        sleeping.join().unwrap();
        passing.join().unwrap();
    });
}

/// The number in the name of the watcher's socket.
const SOCKET: u64 = 7;

/// Lane 1, which lane 0 watches, and its messages.
struct WatchedLane {
    role: Role,
    /// The doorbells of lanes 0 and 1.
    doorbells: [Doorbell; 2],
    /// The lock of lane 1.
    lock: Mutex<()>,
    /// The number of messages to lane 1.
    sent: AtomicU64,
    /// The number of messages that polls of lane 1 have found. Stored under its lock.
    found: AtomicU64,
}

/// The result of a poll of lane 1 by the watcher.
#[derive(PartialEq)]
enum LanePoll {
    Busy,
    Idle,
    /// The lane's thread sleeps, and its doorbell rings for the next message.
    Asleep,
    /// Another thread has the lock, and may leave. The watcher then sleeps for a short time only.
    Taken,
}

impl WatchedLane {
    /// Returns a process whose lane 0 has the role.
    fn new() -> Arc<WatchedLane> {
        let lanes = WatchedLane {
            role: Role::new(),
            doorbells: [Doorbell::new(), Doorbell::new()],
            lock: Mutex::new(()),
            sent: AtomicU64::new(0),
            found: AtomicU64::new(0),
        };
        assert!(lanes.role.claim(0));
        Arc::new(lanes)
    }

    fn send(&self, message: u64) {
        self.sent.store(message, Ordering::Release);
        self.doorbells[1].ring();
    }

    /// Polls lane 1, whose lock the caller has. Returns true if there were messages.
    fn poll(&self) -> bool {
        let sent = self.sent.load(Ordering::Acquire);
        self.found.swap(sent, Ordering::Relaxed) != sent
    }

    /// Polls lane 1, if its lock is free.
    fn poll_if_free(&self) -> LanePoll {
        match self.lock.try_lock() {
            Ok(_lock) if self.poll() => LanePoll::Busy,
            Ok(_lock) => LanePoll::Idle,
            Err(_) if self.doorbells[1].wishes() & SLEEPING != 0 => LanePoll::Asleep,
            Err(_) => LanePoll::Taken,
        }
    }

    /// The thread of lane 1 waits for the first message, and leaves.
    fn wait_for_first_message(&self) {
        let _lock = self.lock.lock().unwrap();
        self.poll();
        while self.found.load(Ordering::Relaxed) == 0 {
            let [_, own] = &self.doorbells;
            own.sleep(NAP, || self.poll() || self.role.is_vacant());
            self.poll();
        }
    }

    /// The watcher sleeps once. Returns true if it may sleep without a time limit, and `has_ended` found that no other thread will act.
    fn watch(&self, has_ended: impl FnOnce()) -> bool {
        let [own, watched] = &self.doorbells;
        let mut must_nap = false;
        let mut slept = false;
        let news = || match self.poll_if_free() {
            LanePoll::Busy => true,
            LanePoll::Idle | LanePoll::Asleep => false,
            LanePoll::Taken => {
                must_nap = true;
                true
            }
        };
        own.sleep_polling(&[watched], SOCKET, news, || {
            let is_rung = || watched.take_rung_watcher(SOCKET) || own.take_rung(SOCKET);
            if !is_rung() {
                has_ended();
                slept = !is_rung();
            }
            false
        });
        if must_nap {
            // The other thread leaves or sleeps during the short sleep. Here it leaves.
            drop(self.lock.lock().unwrap());
        }
        slept
    }
}

/// SYNC POINT doorbell.sleep, doorbell.socket: the thread of lane 1 wakes for the first message and leaves.
/// The second message is found by that thread, or the watcher wakes for it.
#[test]
fn a_message_for_a_lane_whose_thread_leaves_wakes_the_watcher() {
    check(|| {
        let lanes = WatchedLane::new();
        let mut others = vec![
            {
                let lanes = lanes.clone();
                thread::spawn(move || lanes.wait_for_first_message())
            },
            {
                let lanes = lanes.clone();
                thread::spawn(move || (1..=2).for_each(|message| lanes.send(message)))
            },
        ];
        let mut sleeps = false;
        while !sleeps && !others.is_empty() {
            sleeps = lanes.watch(|| others.drain(..).for_each(|other| other.join().unwrap()));
        }
        if !sleeps {
            lanes.poll_if_free();
        }
        assert_eq!(lanes.found.load(Ordering::Relaxed), 2, "a message is left");
    });
}
