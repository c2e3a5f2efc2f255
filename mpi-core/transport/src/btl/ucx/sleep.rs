//! The sleep of a process on the file descriptor of a UCX worker.
//!
//! While UCX's transport `tcp` waits for the peer to acknowledge a connection, its descriptor is readable without an event:
//! UCX waits for the socket to become writable, which it is (`uct_tcp_cm_conn_complete`, `uct_tcp_ep_check_tx_res`).
//! The peer acknowledges when it next polls, so it may compute for long before.
//! A process that slept on the descriptor would return immediately each time and occupy a core, which the peer may need.
//! So while the descriptor is readable and polls find no event, the process sleeps without it, for [`WITHOUT`].

#![allow(unsafe_code)]

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::cell::Cell;
use std::os::fd::{BorrowedFd, RawFd};
use std::time::Duration;

/// Time between two polls of a sleeping process if UCX has no file descriptor or leaves it readable.
const WITHOUT: Duration = Duration::from_micros(100);

/// The descriptor of a worker, and whether it can be slept on.
#[derive(Default)]
pub(super) struct Sleep {
    descriptor: Option<RawFd>,
    /// True if the descriptor was readable before the latest poll, which has found no event.
    was_readable: Cell<bool>,
    /// True if the descriptor is readable without an event.
    is_stuck: Cell<bool>,
}

impl Sleep {
    /// Sets the descriptor, which belongs to the worker.
    pub fn set(&mut self, descriptor: Option<RawFd>) {
        self.descriptor = descriptor;
    }

    /// Records that a poll has found events.
    #[inline]
    pub fn found_events(&self) {
        self.was_readable.set(false);
    }

    /// Returns true if the process may sleep, and false if it must poll before.
    /// `arm` prepares the descriptor for the next event; it returns false if there are events already.
    pub fn may_begin(&self, arm: impl FnOnce() -> bool) -> bool {
        let Some(descriptor) = self.borrowed() else {
            return true;
        };
        if !arm() {
            return false;
        }
        let is_readable = is_readable(descriptor);
        self.is_stuck.set(is_readable && self.was_readable.get());
        self.was_readable.set(is_readable);
        !is_readable || self.is_stuck.get()
    }

    /// Returns the descriptor if the process can sleep on it.
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.borrowed().filter(|_| !self.is_stuck.get())
    }

    /// Returns the maximum duration of a sleep, if the descriptor cannot end the sleep.
    pub fn longest(&self) -> Option<Duration> {
        self.descriptor().is_none().then_some(WITHOUT)
    }

    fn borrowed(&self) -> Option<BorrowedFd<'_>> {
        // SAFETY: the descriptor belongs to the worker that owns this value, and is open until the worker is destroyed.
        self.descriptor
            .map(|descriptor| unsafe { BorrowedFd::borrow_raw(descriptor) })
    }
}

/// Returns true if the descriptor is readable now.
fn is_readable(descriptor: BorrowedFd<'_>) -> bool {
    let mut all = [PollFd::new(&descriptor, PollFlags::IN)];
    poll(&mut all, Some(&Timespec::default())).is_ok_and(|readable| readable > 0)
}
