//! A process we have had to do with, and the connection to it.

use super::address_record::AddressRecord;
use super::incoming::Incoming;
use super::outgoing::Outgoing;
use super::rendezvous_points::Met;
use crate::btl::ProcId;
use std::cell::{Cell, OnceCell, RefCell};

/// A process we have had to do with.
pub(super) struct Peer {
    pub proc: ProcId,
    pub fate: Cell<Fate>,
    /// There was a connection once, so nothing between the two machines refuses connections.
    pub was_up: Cell<bool>,
    pub card: OnceCell<Result<AddressRecord, String>>,
    pub socket: RefCell<Option<Met>>,
    pub megabits: Cell<u32>,
    pub outgoing: RefCell<Outgoing>,
    pub incoming: RefCell<Option<Incoming>>,
    /// The poller reports when the socket is writable.
    pub stuck: Cell<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Fresh,
    Calling,
    Up,
    Lost,
}

impl Peer {
    pub fn new(proc: ProcId) -> Peer {
        Peer {
            proc,
            fate: Cell::new(Fate::Fresh),
            was_up: Cell::new(false),
            card: OnceCell::new(),
            socket: RefCell::default(),
            megabits: Cell::new(0),
            outgoing: RefCell::default(),
            incoming: RefCell::default(),
            stuck: Cell::new(false),
        }
    }

    /// Forgets the connection; the next message makes a new one.
    pub fn reset(&self) {
        self.fate.set(Fate::Fresh);
        self.outgoing.take();
        self.incoming.take();
        self.socket.take();
    }
}
