//! The seventh cache line of the state page: evidence that only other ranks can end a wait.
//! The line is written before each sleep of a wait, so calls that do not sleep never write it.
//!
//! A rank is *quiet* at time T if it is in a wait of the engine, and if a complete poll of all
//! transports and of the wait's condition, begun after T, found nothing.
//! If all ranks of a job are quiet at the same time and no message is in flight between them,
//! no rank will ever make progress again
//! (the termination of a distributed computation: F. Mattern, "Algorithms for distributed termination detection", Distributed Computing 2, 1987).

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};

/// The state of a rank when it last began to sleep in a wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quiet {
    /// Number of times that a wait of this rank has changed from polling to sleeping.
    /// A wait returns to polling when a message arrives, and may then change again.
    pub waits: u64,
    /// Time of the latest of these changes, in CLOCK_MONOTONIC nanoseconds.
    pub since_ns: u64,
    /// A complete poll that began after this time found nothing;
    /// in CLOCK_MONOTONIC nanoseconds, 0 before the first such poll.
    pub checked_ns: u64,
    /// Number of messages that the transports have accepted since the rank's start.
    /// Only transports that count their messages contribute.
    pub sent: u64,
    /// Number of messages that these transports have delivered since the rank's start.
    pub received: u64,
    /// The kernel's ID of the thread that waits.
    pub thread: u32,
    /// True if something other than the ranks of this job may end the wait: another job, another thread of this process inside MPI, a file,
    /// a time limit, fault tolerance, or a transport that does not count its messages.
    pub is_open: bool,
}

#[repr(C, align(64))]
#[derive(Debug, Default)]
pub(super) struct QuietLine {
    waits: AtomicU64,
    since_ns: AtomicU64,
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
        self.since_ns.store(quiet.since_ns, Relaxed);
        // SYNC POINT state.quiet: a reader of this time sees everything that the rank stored
        // before its poll.
        self.checked_ns.store(quiet.checked_ns, Release);
    }

    pub(super) fn latest(&self) -> Quiet {
        // SYNC POINT state.quiet
        let checked_ns = self.checked_ns.load(Acquire);
        Quiet {
            waits: self.waits.load(Relaxed),
            since_ns: self.since_ns.load(Relaxed),
            checked_ns,
            sent: self.sent.load(Relaxed),
            received: self.received.load(Relaxed),
            thread: self.thread.load(Relaxed),
            is_open: self.is_open.load(Relaxed) != 0,
        }
    }
}
