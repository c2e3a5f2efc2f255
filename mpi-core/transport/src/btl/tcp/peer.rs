//! A process we have had to do with, and the connection to it.

use super::address_record::AddressRecord;
use super::incoming::Incoming;
use super::outgoing::Outgoing;
use super::rendezvous_points::Met;
use crate::btl::ProcId;
use crate::btl::peers::Place;
use std::cell::{Cell, RefCell};

/// A process we have had to do with.
pub(super) struct Peer {
    proc: Cell<ProcId>,
    pub fate: Cell<Fate>,
    /// There was a connection once, so nothing between the two machines refuses connections.
    pub was_up: Cell<bool>,
    /// Where it can be reached, once that was asked.
    pub card: RefCell<Option<AddressRecord>>,
    pub socket: RefCell<Option<Met>>,
    pub megabits: Cell<u32>,
    pub outgoing: RefCell<Outgoing>,
    pub incoming: RefCell<Option<Incoming>>,
    /// The poller reports when the socket is writable.
    pub stuck: Cell<bool>,
    /// We have said goodbye, and forget it when it has said so too.
    pub is_leaving: Cell<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Fresh,
    Calling,
    Up,
    Lost,
}

impl Place for Peer {
    fn of(proc: ProcId) -> Peer {
        Peer {
            proc: Cell::new(proc),
            fate: Cell::new(Fate::Fresh),
            was_up: Cell::new(false),
            card: RefCell::default(),
            socket: RefCell::default(),
            megabits: Cell::new(0),
            outgoing: RefCell::default(),
            incoming: RefCell::default(),
            stuck: Cell::new(false),
            is_leaving: Cell::new(false),
        }
    }

    #[inline]
    fn proc(&self) -> ProcId {
        self.proc.get()
    }

    fn become_another(&self, proc: ProcId) {
        self.reset();
        self.proc.set(proc);
        self.was_up.set(false);
        self.card.take();
        self.megabits.set(0);
        self.stuck.set(false);
        self.is_leaving.set(false);
    }
}

impl Peer {
    /// Forgets the connection; the next message makes a new one.
    pub fn reset(&self) {
        self.fate.set(Fate::Fresh);
        self.outgoing.take();
        self.incoming.take();
        self.socket.take();
    }
}
