//! The collective requests in progress, which every progress call may poll, and whether they need polling.
//!
//! An operation must not block inside progress,
//! so this module also records whether the process is inside progress.

use crate::request::Req;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// What an operation waits for, if not for a message.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Awaited {
    /// A store of another rank of the job to the node's memory.
    Memory,
    /// Any other event, which may come from outside the job.
    Outside,
}

#[derive(Default)]
pub(super) struct ActiveOperations {
    running: RefCell<Vec<Req>>,
    /// The engine's number of completed requests when the operations were last polled.
    polled: Cell<u64>,
    /// The number of operations that wait for something else than messages.
    needs_polling: Cell<u32>,
    /// The number of operations that wait for something that may come from outside the job.
    await_outside: Cell<u32>,
    progressing: Cell<bool>,
    /// The number of new operations that [`ActiveOperations::poll_early`] skips.
    skipped: Cell<u32>,
}

/// The number of new operations that are skipped after one whose early polls did not complete it.
const SKIPPED: u32 = 32;

impl ActiveOperations {
    /// Called at the start of a progress call. Returns true if this process was inside progress already; pass this to [`ActiveOperations::leave`].
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
    /// or an operation waits for something else than messages.
    pub fn are_due(&self, completions: u64) -> bool {
        self.polled.replace(completions) != completions || self.need_polling()
    }

    /// Polls each operation with `has_ended`, which returns true if the operation has completed.
    /// Returns true if any operation has completed.
    pub fn poll_each(&self, mut has_ended: impl FnMut(&Req) -> bool) -> bool {
        let mut running = std::mem::take(&mut *self.running.borrow_mut());
        let before = running.len();
        running.retain(|req| !has_ended(req));
        let ended = running.len() < before;
        // Operations that were started during the polls follow the earlier ones.
        let mut list = self.running.borrow_mut();
        running.append(&mut list);
        *list = running;
        ended
    }

    /// Calls `poll`, which polls a new operation several times and returns true if the operation has completed.
    /// If it returns false, the next [`SKIPPED`] calls of this function do nothing.
    #[inline]
    pub fn poll_early(&self, poll: impl FnOnce() -> bool) {
        match self.skipped.get() {
            0 if poll() => {}
            0 => self.skipped.set(SKIPPED),
            skipped => self.skipped.set(skipped - 1),
        }
    }

    /// Adds an active operation.
    pub fn add(&self, req: Req) {
        self.running.borrow_mut().push(req);
        // Poll this operation at the next progress call, even without a new completion.
        self.polled.set(self.polled.get().wrapping_sub(1));
    }

    /// Removes an operation that has completed.
    pub fn remove(&self, req: &Req) {
        self.running
            .borrow_mut()
            .retain(|other| !Rc::ptr_eq(other, req));
    }

    /// Returns true if an operation waits for something else than messages, so that every poll must poll the operations.
    #[inline]
    pub fn need_polling(&self) -> bool {
        self.needs_polling.get() > 0
    }

    /// Returns true if an operation waits for something that may come from outside the job.
    pub fn await_outside_job(&self) -> bool {
        self.await_outside.get() > 0
    }

    /// Registers an operation that waits for something else than messages.
    pub fn add_polled(&self, awaited: Awaited) {
        self.needs_polling.set(self.needs_polling.get() + 1);
        let outside = u32::from(awaited == Awaited::Outside);
        self.await_outside.set(self.await_outside.get() + outside);
    }

    /// Ends a registration by [`ActiveOperations::add_polled`].
    pub fn remove_polled(&self, awaited: Awaited) {
        self.needs_polling.set(self.needs_polling.get() - 1);
        let outside = u32::from(awaited == Awaited::Outside);
        self.await_outside.set(self.await_outside.get() - outside);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_early_polls_without_success_the_next_operations_are_not_polled_early() {
        let operations = ActiveOperations::default();
        let polled = |succeeds: bool| {
            let polled = Cell::new(false);
            operations.poll_early(|| {
                polled.set(true);
                succeeds
            });
            polled.get()
        };
        assert!(polled(true) && polled(true) && polled(false));
        assert!((0..SKIPPED).all(|_| !polled(true)));
        assert!(polled(true) && polled(true));
    }
}
