//! Sleeps on the file descriptor of a completion queue. Some providers do not always signal the descriptor, others leave it readable.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::os::fd::{BorrowedFd, RawFd};
use std::time::{Duration, Instant};

/// Maximum duration of a sleep on the descriptor, because some providers do not always signal it.
const WITH_DESCRIPTOR: Duration = Duration::from_millis(5);
/// Maximum duration of a sleep if the provider has no descriptor, or leaves it readable.
const WITHOUT: Duration = Duration::from_micros(100);
/// A sleep that is shorter than this and finds no completion is a false wake-up.
/// After [`FALSE_WAKES`] consecutive false wake-ups, the descriptor is no longer used.
const FALSE_WAKE: Duration = Duration::from_micros(50);
const FALSE_WAKES: u32 = 64;

pub(super) struct Sleep {
    descriptor: Option<RawFd>,
    /// The time at which the latest sleep began, until the next poll.
    since: Cell<Option<Instant>>,
    /// Number of consecutive false wake-ups.
    false_wakes: Cell<u32>,
}

impl Sleep {
    /// Creates the state for an open completion queue. `descriptor` is the queue's file descriptor, if it has one.
    pub fn of(descriptor: Option<RawFd>) -> Sleep {
        Sleep {
            descriptor,
            since: Cell::new(None),
            false_wakes: Cell::new(0),
        }
    }

    pub fn begin(&self) {
        self.since.set(Some(Instant::now()));
    }

    pub fn end(&self) {
        self.since.set(None);
    }

    /// Records that a poll found completions: resets the number of false wake-ups.
    pub fn found_completions(&self) {
        self.false_wakes.set(0);
    }

    /// Records that a poll found no completions; counts a false wake-up if the sleep before it was short.
    pub fn found_nothing(&self) {
        if let Some(since) = self.since.get()
            && since.elapsed() < FALSE_WAKE
        {
            self.false_wakes
                .set(self.false_wakes.get().saturating_add(1));
        }
    }

    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        let descriptor = self.descriptor?;
        // SAFETY: the descriptor belongs to the completion queue of the endpoint that owns this value, and the queue is closed only together with that endpoint.
        (self.false_wakes.get() < FALSE_WAKES)
            .then(|| unsafe { BorrowedFd::borrow_raw(descriptor) })
    }

    pub fn longest(&self) -> Duration {
        match self.descriptor() {
            Some(_) => WITH_DESCRIPTOR,
            None => WITHOUT,
        }
    }
}
