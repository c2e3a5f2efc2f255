//! Operations that progress polls: collective requests under way, and whether it is time to poll them.
//!
//! Nothing that progress polls may wait, so this also knows whether the process is inside progress.

use crate::request::Req;
use std::cell::{Cell, RefCell};

#[derive(Default)]
pub(super) struct Operations {
    running: RefCell<Vec<Req>>,
    /// The completion count when they were last polled.
    polled: Cell<u64>,
    /// How many operations wait for something other than messages.
    restless: Cell<u32>,
    progressing: Cell<bool>,
}

impl Operations {
    /// This process is inside progress from now on; whether it was before, which [`Operations::leave`] is to be told.
    #[inline]
    pub fn enter(&self) -> bool {
        self.progressing.replace(true)
    }

    #[inline]
    pub fn leave(&self, was_inside: bool) {
        self.progressing.set(was_inside);
    }

    /// Whether this process is inside progress.
    #[inline]
    pub fn is_inside(&self) -> bool {
        self.progressing.get()
    }

    /// Whether none is under way.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.running.borrow().is_empty()
    }

    /// Whether the operations are to be polled: the number of requests that have completed has changed since the last question,
    /// or an operation waits for something other than messages.
    pub fn are_due(&self, completions: u64) -> bool {
        self.polled.replace(completions) != completions || self.is_restless()
    }

    /// Polls each; `has_ended` says of one whether it has. Returns whether any has.
    pub fn poll_each(&self, mut has_ended: impl FnMut(&Req) -> bool) -> bool {
        let mut running = std::mem::take(&mut *self.running.borrow_mut());
        let before = running.len();
        running.retain(|req| !has_ended(req));
        let ended = running.len() < before;
        // Operations that were started meanwhile stand behind those that were there.
        let mut list = self.running.borrow_mut();
        running.append(&mut list);
        *list = running;
        ended
    }

    /// Another one is under way.
    pub fn add(&self, req: Req) {
        self.running.borrow_mut().push(req);
        // What completed before this operation began does not concern it, but what completes from now on does.
        self.polled.set(self.polled.get().wrapping_sub(1));
    }

    /// Whether some wait for something other than messages, so that each turn polls all.
    #[inline]
    pub fn is_restless(&self) -> bool {
        self.restless.get() > 0
    }

    /// One more waits for something other than messages.
    pub fn add_restless(&self) {
        self.restless.set(self.restless.get() + 1);
    }

    /// It waits no more.
    pub fn remove_restless(&self) {
        self.restless.set(self.restless.get() - 1);
    }
}
