//! The state of a peer and of the connection to it.

use super::address_record::AddressRecord;
use super::incoming::Incoming;
use super::outgoing::Outgoing;
use super::rendezvous_points::Met;
use crate::btl::ProcId;
use crate::btl::peers::Place;
use std::cell::{Cell, RefCell};

/// The state of one peer and of the connection to it.
pub(super) struct Peer {
    proc: Cell<ProcId>,
    pub fate: Cell<Fate>,
    /// True if the peer has been connected at least once. Then no firewall prevents connections between the two machines.
    pub was_up: Cell<bool>,
    /// The peer's address record; `None` until it has been read.
    pub card: RefCell<Option<AddressRecord>>,
    pub socket: RefCell<Option<Met>>,
    pub megabits: Cell<u32>,
    /// The network of the latest connection.
    pub network: RefCell<Option<String>>,
    pub outgoing: RefCell<Outgoing>,
    pub incoming: RefCell<Option<Incoming>>,
    /// True if the socket is registered for EPOLLOUT, because it was full.
    pub stuck: Cell<bool>,
    /// True if an older connection to the peer is still being closed; its messages must be delivered first.
    pub is_second: Cell<bool>,
    /// True if this process has written or queued a frame on the present connection.
    pub has_spoken: Cell<bool>,
    /// True if the peer's process has ended, so the shutdown does not wait for the peer.
    pub is_abandoned: Cell<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Fresh,
    Calling,
    Up,
    Lost,
}

impl Fate {
    /// Returns true if a connection is established or being established.
    pub fn is_linked(self) -> bool {
        matches!(self, Fate::Calling | Fate::Up)
    }
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
            network: RefCell::default(),
            outgoing: RefCell::default(),
            incoming: RefCell::default(),
            stuck: Cell::new(false),
            is_second: Cell::new(false),
            has_spoken: Cell::new(false),
            is_abandoned: Cell::new(false),
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
        self.is_abandoned.set(false);
        self.card.take();
        self.megabits.set(0);
        self.network.take();
        self.stuck.set(false);
    }
}

impl Peer {
    /// Discards the connection; the next message establishes a new one.
    pub fn reset(&self) {
        self.fate.set(Fate::Fresh);
        self.is_second.set(false);
        self.has_spoken.set(false);
        self.outgoing.take();
        self.incoming.take();
        self.socket.take();
    }
}
