//! What could not be handed to a peer's transport yet.
//!
//! The queue keeps the order in which messages were sent, which matching relies on.

use crate::btl::{Am, Header};
use crate::request::Req;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// Something that the transport had no room for.
pub enum Queued {
    /// A send request whose eager data or rendezvous have not been taken.
    Send(Req),
    /// A short control message.
    Control {
        am: Am,
        header: Header,
        payload: [u8; 8],
    },
}

#[derive(Default)]
pub struct SendQueue {
    items: RefCell<VecDeque<Queued>>,
    /// Whether the peer is on the list of those that something waits for.
    listed: Cell<bool>,
}

impl SendQueue {
    /// Whether a new message may overtake nothing.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.items.borrow().is_empty()
    }

    pub fn push(&self, item: Queued) {
        self.items.borrow_mut().push_back(item);
    }

    pub fn pop(&self) -> Option<Queued> {
        self.items.borrow_mut().pop_front()
    }

    /// The transport had no room for what was just popped.
    pub fn put_back(&self, item: Queued) {
        self.items.borrow_mut().push_front(item);
    }

    /// Takes a send out; answers whether it was there.
    pub fn remove(&self, req: &Req) -> bool {
        let at = self.items.borrow().iter().position(|item| item.is(req));
        let item = at.and_then(|at| self.items.borrow_mut().remove(at));
        item.is_some()
    }

    /// The peer cannot be reached any more.
    pub fn clear(&self) {
        self.items.borrow_mut().clear();
    }

    /// Whether the peer is on the list of those that something waits for, from now on.
    pub fn set_listed(&self, listed: bool) -> bool {
        self.listed.replace(listed)
    }
}

impl Queued {
    fn is(&self, req: &Req) -> bool {
        matches!(self, Queued::Send(other) if Rc::ptr_eq(other, req))
    }
}
