//! The queue of messages that a peer's transport has not accepted yet, for lack of space.
//!
//! The queue preserves the order in which messages were sent, which matching requires.

use crate::btl::{Am, Header};
use crate::request::Req;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// A message for which the transport had no space.
pub enum Queued {
    /// A send request whose eager data or announcement the transport has not accepted.
    Send(Req),
    /// A short control message.
    Control {
        am: Am,
        header: Header,
        payload: [u8; 8],
    },
    /// The datatype description (TYPES) of the next message in the queue, with that message's header.
    Description { header: Header, payload: Box<[u8]> },
}

#[derive(Default)]
pub struct SendQueue {
    items: RefCell<VecDeque<Queued>>,
    /// True if the peer is on the list of peers with queued messages.
    listed: Cell<bool>,
}

impl SendQueue {
    /// Returns true if no message is queued. Only then may a new message bypass the queue.
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

    /// Returns the item that was popped last to the front, because the transport had no space for it.
    pub fn put_back(&self, item: Queued) {
        self.items.borrow_mut().push_front(item);
    }

    /// Removes a send from the queue. Returns true if the queue contained the send.
    pub fn remove(&self, req: &Req) -> bool {
        let at = self.items.borrow().iter().position(|item| item.is(req));
        let item = at.and_then(|at| self.items.borrow_mut().remove(at));
        item.is_some()
    }

    /// Discards all queued messages, after the loss of the peer.
    pub fn clear(&self) {
        self.items.borrow_mut().clear();
    }

    /// Records whether the peer is on the list of peers with queued messages. Returns the previous value.
    pub fn set_listed(&self, listed: bool) -> bool {
        self.listed.replace(listed)
    }
}

impl Queued {
    fn is(&self, req: &Req) -> bool {
        matches!(self, Queued::Send(other) if Rc::ptr_eq(other, req))
    }
}
