//! Operations that progress polls: the active collective requests, and whether they need polling.
//!
//! An operation must not block inside progress,
//! so this module also records whether the process is inside progress.

use crate::request::Req;
use std::cell::{Cell, RefCell};

/// The event other than a message for which an operation waits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Awaited {
    /// Words in the node's memory, which other ranks of the job store.
    Memory,
    /// An event that may come from outside the job.
    Outside,
}

#[derive(Default)]
pub(super) struct ActiveOperations {
    running: RefCell<Vec<Req>>,
    /// The engine's completion count when the operations were last polled.
    polled: Cell<u64>,
    /// The number of operations that wait for something other than messages.
    needs_polling: Cell<u32>,
    /// The number of operations that wait for something outside the job.
    await_outside: Cell<u32>,
    progressing: Cell<bool>,
}

impl ActiveOperations {
    /// Enters progress. Returns true if this process was inside progress already; the caller passes that to [`ActiveOperations::leave`].
    #[inline]
    pub fn enter(&self) -> bool {
        self.progressing.replace(true)
    }

    #[inline]
    pub fn leave(&self, was_inside: bool) {
        self.progressing.set(was_inside);
    }

    /// Returns true if this process is inside progress.
    #[inline]
    pub fn is_inside(&self) -> bool {
        self.progressing.get()
    }

    /// Returns true if no operation is active.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.running.borrow().is_empty()
    }

    /// Returns true if the operations must be polled: a request has completed since the last call,
    /// or an operation waits for something other than messages.
    pub fn are_due(&self, completions: u64) -> bool {
        self.polled.replace(completions) != completions || self.need_polling()
    }

    /// Polls each operation: `has_ended` polls one operation and returns true if it has completed.
    /// Returns true if any has completed.
    pub fn poll_each(&self, mut has_ended: impl FnMut(&Req) -> bool) -> bool {
        let mut running = std::mem::take(&mut *self.running.borrow_mut());
        let before = running.len();
        running.retain(|req| !has_ended(req));
        let ended = running.len() < before;
        // Operations that were started meanwhile follow the earlier ones.
        let mut list = self.running.borrow_mut();
        running.append(&mut list);
        *list = running;
        ended
    }

    /// Adds an active operation.
    pub fn add(&self, req: Req) {
        self.running.borrow_mut().push(req);
        // Poll this operation at the next progress call, even without a new completion.
        self.polled.set(self.polled.get().wrapping_sub(1));
    }

    /// Returns true if an operation waits for something other than messages, so that every poll polls all operations.
    #[inline]
    pub fn need_polling(&self) -> bool {
        self.needs_polling.get() > 0
    }

    /// Returns true if an operation waits for something that may come from outside the job.
    pub fn await_outside_job(&self) -> bool {
        self.await_outside.get() > 0
    }

    /// Counts an operation that waits for something other than messages.
    pub fn add_polled(&self, awaited: Awaited) {
        self.needs_polling.set(self.needs_polling.get() + 1);
        let outside = u32::from(awaited == Awaited::Outside);
        self.await_outside.set(self.await_outside.get() + outside);
    }

    /// Ends the polling that [`ActiveOperations::add_polled`] has requested.
    pub fn remove_polled(&self, awaited: Awaited) {
        self.needs_polling.set(self.needs_polling.get() - 1);
        let outside = u32::from(awaited == Awaited::Outside);
        self.await_outside.set(self.await_outside.get() - outside);
    }
}
