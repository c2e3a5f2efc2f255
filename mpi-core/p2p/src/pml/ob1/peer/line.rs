//! Sends to one peer whose data go in fragments or pieces, in the order of their turns.

use crate::request::Req;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

#[derive(Default)]
pub struct Line {
    sends: RefCell<VecDeque<Req>>,
    /// Whether the peer is on the list of those that have any.
    listed: Cell<bool>,
}

impl Line {
    pub fn is_empty(&self) -> bool {
        self.sends.borrow().is_empty()
    }

    /// Puts a send at the end.
    pub fn push(&self, req: Req) {
        self.sends.borrow_mut().push_back(req);
    }

    /// Takes the send whose turn it is.
    pub fn pop(&self) -> Option<Req> {
        self.sends.borrow_mut().pop_front()
    }

    /// There was no room for the rest of what was just popped.
    pub fn put_back(&self, req: Req) {
        self.sends.borrow_mut().push_front(req);
    }

    /// Takes a send out; answers whether it was there.
    pub fn remove(&self, req: &Req) -> bool {
        let at = self.place_of(req);
        let send = at.and_then(|at| self.sends.borrow_mut().remove(at));
        send.is_some()
    }

    fn place_of(&self, req: &Req) -> Option<usize> {
        (self.sends.borrow().iter()).position(|other| Rc::ptr_eq(other, req))
    }

    /// Whether the peer is on the list of those that have any, from now on.
    pub fn set_listed(&self, listed: bool) -> bool {
        self.listed.replace(listed)
    }
}
