//! Models of the watcher's role: while a thread sleeps, some thread has the role or is woken for it.
//!
//! A sleep has no timeout under loom, so a lost call blocks the model.

use loom::sync::Arc;
use loom::thread;

use super::check;
use crate::doorbell::{Doorbell, NAP};
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
