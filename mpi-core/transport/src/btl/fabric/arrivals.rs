//! Arrivals on a fabric: restores the order of each peer's messages.
//! A message is delivered to the poll's sink, or stored until a poll has a sink.

use super::frame::{Frame, Kind};
use super::peer::{Early, Peer, State};
use super::pool::Slot;
use super::port::{Close, Events, Offer, Port};
use super::{Chore, Fabric, order};
use crate::btl::{Am, Header, OVERTAKES, ProcId, Sink};
use std::cell::Cell;

/// An event that is stored until a poll has a sink.
pub(super) enum Held {
    Message {
        from: ProcId,
        am: Am,
        header: Header,
        payload: Vec<u8>,
    },
    Parted(ProcId),
    Lost(ProcId, String),
}

/// One poll of a fabric, with or without a sink.
pub(super) struct Turn<'a, P: Port> {
    fabric: &'a Fabric<P>,
    sink: Option<&'a dyn Sink>,
    delivered: Cell<usize>,
}

impl<'a, P: Port> Turn<'a, P> {
    pub fn new(fabric: &'a Fabric<P>, sink: Option<&'a dyn Sink>) -> Turn<'a, P> {
        Turn {
            fabric,
            sink,
            delivered: Cell::new(0),
        }
    }

    pub fn fabric(&self) -> &'a Fabric<P> {
        self.fabric
    }

    /// Returns the number of messages that were delivered to the sink.
    pub fn delivered(&self) -> usize {
        self.delivered.get()
    }

    /// Delivers the stored events to the sink, if this poll has one.
    #[inline]
    pub fn deliver_held(&self) {
        if self.sink.is_some() && !self.fabric.held.borrow().is_empty() {
            self.deliver_all_held();
        }
    }

    #[cold]
    fn deliver_all_held(&self) {
        let Some(sink) = self.sink else { return };
        loop {
            let next = self.fabric.held.borrow_mut().pop_front();
            match next {
                Some(Held::Message {
                    from,
                    am,
                    header,
                    payload,
                }) => self.hand(from, am, header, &payload),
                Some(Held::Parted(peer)) => sink.parted(peer),
                Some(Held::Lost(peer, why)) => sink.lost(peer, &why),
                None => return,
            }
        }
    }

    #[inline]
    fn hand(&self, from: ProcId, am: Am, header: Header, payload: &[u8]) {
        match self.sink {
            Some(sink) => {
                self.delivered.set(self.delivered.get() + 1);
                let received = &self.fabric.received;
                received.set(received.get() + 1);
                sink.deliver(from, am, header, payload);
            }
            None => self.fabric.held.borrow_mut().push_back(Held::Message {
                from,
                am,
                header,
                payload: payload.to_vec(),
            }),
        }
    }

    /// Handles the next message in the peer's order.
    #[inline]
    fn take(&self, peer: &Peer, am: Am, header: Header, is_disconnect: bool, payload: &[u8]) {
        match is_disconnect {
            false => self.hand(peer.proc, am, header, payload),
            true => self.disconnected(peer),
        }
    }

    #[cold]
    fn disconnected(&self, peer: &Peer) {
        peer.has_left.set(true);
        let mut chores = self.fabric.chores.borrow_mut();
        chores.push(Chore::Answer(peer.proc));
    }

    #[cold]
    fn keep(&self, peer: &Peer, frame: &Frame, payload: &[u8]) {
        let early = Early {
            am: frame.am,
            header: frame.header,
            is_disconnect: frame.kind == Kind::Disconnect,
            payload: payload.to_vec(),
        };
        peer.order.borrow_mut().keep(frame.number, early);
    }

    #[cold]
    pub fn lose(&self, peer: &Peer, why: &str) {
        let lose = Chore::Lose(peer.proc, why.into(), Close::AtOnce);
        self.fabric.chores.borrow_mut().push(lose);
    }

    /// Records that a first message has arrived from a peer, and requests a connection to it.
    #[cold]
    fn meet(&self, peer: &Peer) {
        peer.is_made.set(true);
        peer.has_spoken.set(true);
        if peer.state.get() == State::Fresh {
            let connect = Chore::Connect(peer.proc);
            self.fabric.chores.borrow_mut().push(connect);
        }
    }
}

impl<P: Port> Events for Turn<'_, P> {
    #[inline]
    fn arrived(&self, head: &[u8], payload: &[u8]) {
        let Some(frame) = Frame::decode(head) else {
            return;
        };
        // A sender that does not know this process's key does not belong to this job.
        if frame.key != self.fabric.key || payload.len() > self.fabric.info.limits.max_send {
            return;
        }
        let Some(peer) = self.fabric.peer(frame.from) else {
            return;
        };
        if peer.state.get() == State::Lost {
            return;
        }
        if !peer.is_made.get() || !peer.has_spoken.get() {
            self.meet(peer);
        }
        if frame.kind == Kind::Cut {
            return self.lose(peer, "the peer has given up the connection");
        }
        if frame.kind == Kind::Fill {
            // The data of a place are offered; a sender of this library never sends them in a message.
            return;
        }
        if frame.am & OVERTAKES != 0 {
            return self.hand(frame.from, frame.am, frame.header, payload);
        }
        let turn = peer.order.borrow().turn(frame.number);
        match turn {
            order::Turn::Now => {}
            order::Turn::Later => return self.keep(peer, &frame, payload),
            order::Turn::Broken => {
                return self.lose(peer, "a message has arrived twice or far before its turn");
            }
        }
        let is_disconnect = frame.kind == Kind::Disconnect;
        self.take(peer, frame.am, frame.header, is_disconnect, payload);
        loop {
            let next = peer.order.borrow_mut().advance();
            let Some(next) = next else { break };
            self.take(
                peer,
                next.am,
                next.header,
                next.is_disconnect,
                &next.payload,
            );
        }
    }

    #[inline]
    fn sent(&self, slot: Slot, why: Option<String>) {
        let peer = self.fabric.peer(slot.peer);
        self.fabric.pool.put(slot);
        let Some(peer) = peer else { return };
        self.fabric.finished(peer);
        match why {
            None => peer.is_made.set(true),
            Some(why) if peer.state.get() == State::Up => self.lose(peer, &why),
            Some(_) => {}
        }
    }

    fn ended(&self, number: u64, succeeded: bool) {
        self.fabric.operations.end(number, succeeded);
    }

    #[inline]
    fn offered(&self, head: &[u8], offer: Offer) {
        self.match_offer(head, offer);
    }

    fn transferred(&self, transfer: u64, why: Option<String>) {
        self.end_transfer(transfer, why);
    }

    #[cold]
    fn failed(&self, proc: ProcId, why: String) {
        if let Some(peer) = self.fabric.peer(proc)
            && peer.state.get() == State::Up
        {
            self.lose(peer, &why);
        }
    }
}
