//! One peer as ob1 sees it: the transport that reaches it and what could not be handed to it yet.

use crate::btl::{Am, Btl, Endpoint, Header, Limits, Payload, SendError};
use crate::request::{Req, ReqId};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// Something for the peer that the transport had no room for.
/// The queue keeps the order in which messages were sent, which matching relies on.
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

pub struct Peer {
    pub btl: Rc<dyn Btl>,
    pub endpoint: Endpoint,
    pub limits: Limits,
    /// Cleared for good when the system refuses the first single copy.
    pub single_copy: Cell<bool>,
    /// Cleared for good when one side could not do its part of a copy.
    pub together: Cell<bool>,
    /// Messages that it has been told of and has not begun to take.
    pub announced: Cell<u32>,
    pub queue: RefCell<VecDeque<Queued>>,
    /// The receive into whose memory a long eager message of the peer is being read.
    pub landing: Cell<Option<ReqId>>,
}

impl Peer {
    pub fn new(btl: Rc<dyn Btl>, endpoint: Endpoint) -> Peer {
        Peer {
            limits: btl.limits(),
            single_copy: Cell::new(btl.single_copy().is_some()),
            together: Cell::new(true),
            announced: Cell::new(0),
            btl,
            endpoint,
            queue: RefCell::default(),
            landing: Cell::new(None),
        }
    }

    #[inline]
    pub fn send(&self, am: Am, header: Header, payload: Payload<'_>) -> Result<(), SendError> {
        self.btl.send(self.endpoint, am, header, payload)
    }

    /// Whether a new message may overtake nothing.
    #[inline]
    pub fn is_clear(&self) -> bool {
        self.queue.borrow().is_empty()
    }
}
