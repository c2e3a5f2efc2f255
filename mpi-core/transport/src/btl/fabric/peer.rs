//! State of one peer of a fabric.

use super::order::Order;
use super::pool::Slot;
use crate::btl::{Am, Header, ProcId};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::time::Instant;

pub(super) struct Peer {
    pub proc: ProcId,
    pub state: Cell<State>,
    /// The key of the peer's card, which each message to the peer must contain.
    pub key: Cell<u64>,
    /// The sequence number of the next ordered message to the peer.
    pub next: Cell<u16>,
    pub order: RefCell<Order<Early>>,
    /// Messages that the network library has refused to send to the peer.
    pub refused: RefCell<VecDeque<Slot>>,
    /// Number of messages to the peer whose transmission is not complete.
    pub unsent: Cell<u32>,
    /// Number of active transfers to the peer ([`InPlace::fill`](crate::btl::InPlace::fill)).
    pub filling: Cell<u32>,
    /// True if the connection is established: the library has transmitted a message on it, or a message has arrived.
    pub is_made: Cell<bool>,
    /// The time at which the first message began to wait for the connection to be established.
    pub waits_since: Cell<Option<Instant>>,
    /// True if a message was sent to the peer or has arrived from it, so a disconnect message must be sent.
    pub has_spoken: Cell<bool>,
    /// True if the peer's disconnect message has arrived.
    pub has_left: Cell<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Fresh,
    Up,
    Lost,
}

/// An ordered message that has arrived before an earlier one.
pub(super) struct Early {
    pub am: Am,
    pub header: Header,
    pub is_disconnect: bool,
    pub payload: Vec<u8>,
}

impl Peer {
    pub fn of(proc: ProcId) -> Box<Peer> {
        Box::new(Peer {
            proc,
            state: Cell::new(State::Fresh),
            key: Cell::new(0),
            next: Cell::new(0),
            order: RefCell::default(),
            refused: RefCell::default(),
            unsent: Cell::new(0),
            filling: Cell::new(0),
            is_made: Cell::new(false),
            waits_since: Cell::new(None),
            has_spoken: Cell::new(false),
            has_left: Cell::new(false),
        })
    }

    /// Resets the connection; the next message establishes a new one.
    pub fn reset(&self) {
        self.state.set(State::Fresh);
        self.next.set(0);
        self.order.take();
        self.is_made.set(false);
        self.waits_since.set(None);
        self.has_spoken.set(false);
        self.has_left.set(false);
    }

    /// Returns true if the transmission of a message or of data in place is not complete.
    pub fn is_sending(&self) -> bool {
        self.unsent.get() > 0 || self.filling.get() > 0
    }

    /// Returns true if this process must send the peer a disconnect message when it shuts down.
    pub fn expects_disconnect(&self) -> bool {
        self.state.get() == State::Up && self.has_spoken.get()
    }
}
