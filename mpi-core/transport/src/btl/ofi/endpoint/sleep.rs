//! Sleeps on the descriptor of a completion queue, which providers do not always signal, and some signal without an end.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::os::fd::{BorrowedFd, RawFd};
use std::time::{Duration, Instant};

/// Providers have failed to signal their descriptor, so no sleep on it is longer.
const WITH_DESCRIPTOR: Duration = Duration::from_millis(5);
/// Sleep of a process whose provider has no descriptor, or one that is always readable.
const WITHOUT: Duration = Duration::from_micros(100);
/// A sleep that ends sooner without an event was no sleep; after this number of them the descriptor is not used any more.
const FALSE_WAKE: Duration = Duration::from_micros(50);
const FALSE_WAKES: u32 = 64;

pub(super) struct Sleep {
    descriptor: Option<RawFd>,
    /// When the process began to sleep.
    since: Cell<Option<Instant>>,
    /// The number of sleeps in a row that were none.
    false_wakes: Cell<u32>,
}

impl Sleep {
    /// With the descriptor of an open completion queue, if it has one.
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

    /// Notes that a poll found completions.
    pub fn found_completions(&self) {
        self.false_wakes.set(0);
    }

    /// Notes that a poll found nothing, and counts a sleep that was none: some providers' descriptors stay readable.
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
        // SAFETY: the descriptor belongs to the queue of the endpoint whose part this value is, and the queue is closed only with that endpoint.
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
