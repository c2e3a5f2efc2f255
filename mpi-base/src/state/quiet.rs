//! The seventh line: the proof that a waiting rank can be moved only by others. Written before each sleep of a wait, never by a call that does not sleep.
//!
//! A rank is *quiet* at a time if it is inside a wait of the engine, polls all transports and its condition once from beginning to end after that time, and finds nothing.
//! If all ranks of a job are quiet at one time, and no message is between them, no rank will ever move again
//! (the termination of a distributed computation: F. Mattern, "Algorithms for distributed termination detection", Distributed Computing 2, 1987).

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};

/// What a waiting rank has seen at its latest sleep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quiet {
    /// Counts the waits of this rank that have slept, and those that went on sleeping after something had arrived.
    pub waits: u64,
    /// A poll of everything that began after this time found nothing, CLOCK_MONOTONIC nanoseconds; 0 before the first.
    pub checked_ns: u64,
    /// The messages that transports with a medium of their own have accepted since the rank's start.
    pub sent: u64,
    /// The messages that these transports have delivered.
    pub received: u64,
    /// The system's number of the waiting thread.
    pub thread: u32,
    /// Whether something besides the ranks of this job may end the wait: another job, another thread of this process inside MPI, a file,
    /// a time limit, fault tolerance, or a transport that does not count its messages.
    pub is_open: bool,
}

#[repr(C, align(64))]
#[derive(Debug, Default)]
pub(super) struct QuietLine {
    waits: AtomicU64,
    checked_ns: AtomicU64,
    sent: AtomicU64,
    received: AtomicU64,
    thread: AtomicU32,
    is_open: AtomicU32,
}

impl QuietLine {
    pub(super) fn set(&self, quiet: &Quiet) {
        self.sent.store(quiet.sent, Relaxed);
        self.received.store(quiet.received, Relaxed);
        self.thread.store(quiet.thread, Relaxed);
        self.is_open.store(quiet.is_open.into(), Relaxed);
        self.waits.store(quiet.waits, Relaxed);
        // SYNC POINT state.quiet: a reader of this time sees what the rank had stored before its poll began.
        self.checked_ns.store(quiet.checked_ns, Release);
    }

    pub(super) fn latest(&self) -> Quiet {
        // SYNC POINT state.quiet
        let checked_ns = self.checked_ns.load(Acquire);
        Quiet {
            waits: self.waits.load(Relaxed),
            checked_ns,
            sent: self.sent.load(Relaxed),
            received: self.received.load(Relaxed),
            thread: self.thread.load(Relaxed),
            is_open: self.is_open.load(Relaxed) != 0,
        }
    }
}
