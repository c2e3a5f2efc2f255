//! The queue of a peer's sends in fragments, which are served round-robin.

use crate::request::Req;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

#[derive(Default)]
pub struct Line {
    sends: RefCell<VecDeque<Req>>,
    /// True if the peer is on the list of peers with sends in fragments.
    listed: Cell<bool>,
}

impl Line {
    pub fn is_empty(&self) -> bool {
        self.sends.borrow().is_empty()
    }

    /// Appends a send to the queue.
    pub fn push(&self, req: Req) {
        self.sends.borrow_mut().push_back(req);
    }

    /// Removes and returns the first send of the queue.
    pub fn pop(&self) -> Option<Req> {
        self.sends.borrow_mut().pop_front()
    }

    /// Returns the send that was popped last to the front, because the transport had no space for the rest of its data.
    pub fn put_back(&self, req: Req) {
        self.sends.borrow_mut().push_front(req);
    }

    /// Removes a send from the queue. Returns true if the queue contained the send.
    pub fn remove(&self, req: &Req) -> bool {
        let at = self.place_of(req);
        let send = at.and_then(|at| self.sends.borrow_mut().remove(at));
        send.is_some()
    }

    fn place_of(&self, req: &Req) -> Option<usize> {
        (self.sends.borrow().iter()).position(|other| Rc::ptr_eq(other, req))
    }

    /// Records whether the peer is on the list of peers with sends in fragments.
    /// Returns the previous value.
    pub fn set_listed(&self, listed: bool) -> bool {
        self.listed.replace(listed)
    }
}
