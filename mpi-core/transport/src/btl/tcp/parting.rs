//! Orderly shutdown of connections. Each direction of a connection ends with its own disconnect message.
//!
//! This process writes its queue and a disconnect message. It delivers the peer's messages until the peer's disconnect message has arrived. Then the connection is closed.
//! A disconnect message ends one direction of one connection and does not affect other connections between the same two processes.
//! Two processes that disconnect and connect again use a new connection. The old one remains in the list `parting` until the slower process has sent its disconnect message.
//! All messages of the old connection are delivered before those of the new one, so messages keep their order.

use super::frame::{Frame, Kind};
use super::incoming::{End, Incoming};
use super::outgoing::Outgoing;
use super::peer::{Fate, Peer};
use super::rendezvous_points::Met;
use super::{PARTING, Tcp};
use crate::btl::peers::Place;
use crate::btl::{Payload, ProcId, Sink};
use rustix::event::epoll;
use rustix::net::Shutdown;
use std::os::fd::AsFd;

pub(super) struct Parting {
    proc: ProcId,
    met: Met,
    outgoing: Outgoing,
    /// The receiver; `None` after the peer's disconnect message has arrived.
    incoming: Option<Incoming>,
    has_said: bool,
}

impl Parting {
    pub(super) fn proc(&self) -> ProcId {
        self.proc
    }

    /// Returns true if queued bytes are still to be written.
    pub(super) fn is_on_its_way(&self) -> bool {
        self.outgoing.is_on_its_way()
    }

    /// Delivers the messages that have arrived. Returns their number, and true if the connection is broken.
    fn receive(&mut self, sink: &dyn Sink) -> (usize, bool) {
        let Some(reader) = &mut self.incoming else {
            return (0, false);
        };
        let turn = reader.progress(self.met.socket.as_fd(), self.proc, sink);
        if turn.end.is_some() {
            self.incoming = None;
        }
        let is_broken = turn.end.is_some_and(|end| end != End::Goodbye);
        (turn.delivered, is_broken)
    }

    /// Writes the queue and then the disconnect message. Returns true if the connection is broken.
    fn send(&mut self) -> bool {
        let socket = self.met.socket.as_fd();
        if self.is_on_its_way() && self.outgoing.flush(socket).is_err() {
            return true;
        }
        if !self.is_on_its_way() && !self.has_said {
            self.has_said = true;
            say_goodbye(&self.met, &mut self.outgoing);
        }
        false
    }

    /// Returns true if both processes have sent their disconnect message.
    fn is_over(&self) -> bool {
        self.has_said && self.incoming.is_none()
    }

    /// Registers the socket with epoll: for reading until the peer's disconnect message has arrived, and for writing while bytes are queued.
    fn watch(&self, epoll: &impl AsFd) {
        let mut events = epoll::EventFlags::empty();
        events.set(epoll::EventFlags::IN, self.incoming.is_some());
        events.set(epoll::EventFlags::OUT, self.is_on_its_way());
        let token = epoll::EventData::new_u64(PARTING);
        let (epoll, socket) = (epoll.as_fd(), &self.met.socket);
        if epoll::modify(epoll, socket, token, events).is_err() {
            let _ = epoll::add(epoll, socket, token, events);
        }
    }
}

/// Sends the disconnect message after all other data. If a lent frame is incomplete, no disconnect message is sent, so the peer detects that data are missing.
fn say_goodbye(met: &Met, outgoing: &mut Outgoing) {
    let goodbye = Frame {
        kind: Kind::Goodbye,
        am: 0,
        header: [0; 2],
        len: 0,
    };
    if outgoing.is_empty() {
        let nothing = Payload::Bytes(&[]);
        let _ = outgoing.send(Some(met.socket.as_fd()), &goodbye.encode(), nothing);
    }
    let _ = rustix::net::shutdown(&met.socket, Shutdown::Write);
}

impl Tcp {
    /// Starts the shutdown of the connection to a peer. The next message to the peer establishes a new connection.
    #[cold]
    pub(super) fn set_aside(&self, peer: &Peer) {
        self.ask_for_room(peer, false);
        self.up.borrow_mut().retain(|&proc| proc != peer.proc());
        let (outgoing, incoming) = (peer.outgoing.take(), peer.incoming.take());
        let met = peer.socket.take();
        // The old connection is not closed yet, so [`Names`](crate::btl::Names) is not notified.
        peer.fate.set(Fate::Fresh);
        peer.has_spoken.set(false);
        peer.is_second.set(false);
        let Some(met) = met else {
            return self.names.disconnected(peer.proc());
        };
        let mut parting = Parting {
            proc: peer.proc(),
            met,
            outgoing,
            incoming,
            has_said: false,
        };
        let is_broken = parting.send();
        if is_broken || parting.is_over() {
            return self.names.disconnected(peer.proc());
        }
        parting.watch(&self.epoll);
        self.parting.borrow_mut().push(parting);
    }

    /// Returns true if a connection to the process that is being closed may still deliver messages.
    pub(super) fn is_still_read(&self, proc: ProcId) -> bool {
        let parting = self.parting.borrow();
        let of_proc = |one: &Parting| one.proc == proc && one.incoming.is_some();
        parting.iter().any(of_proc)
    }

    /// Reads and writes all connections that are being closed. Returns the number of messages delivered.
    #[cold]
    pub(super) fn progress_parting(&self, sink: &dyn Sink) -> usize {
        let mut delivered = 0;
        // The sink may send messages and thereby add connections to the list.
        let mut all = self.parting.take();
        let mut open: Vec<ProcId> = Vec::new();
        all.retain_mut(|parting| {
            // If there are two old connections to a process, the older one is first read to its end.
            let (came, broken) = match open.contains(&parting.proc) {
                true => (0, false),
                false => parting.receive(sink),
            };
            delivered += came;
            if parting.incoming.is_some() {
                open.push(parting.proc);
            }
            let is_over = broken || parting.send() || parting.is_over();
            match is_over {
                true => self.names.disconnected(parting.proc),
                false => parting.watch(&self.epoll),
            }
            !is_over
        });
        let mut parting = self.parting.borrow_mut();
        all.append(&mut parting);
        *parting = all;
        delivered
    }

    /// Disconnects from a peer until a communicator contains the peer again. A connection on which this process has sent nothing is left open,
    /// because the peer may have established it for its next messages.
    pub(super) fn begin_disconnect(&self, proc: ProcId) {
        let Some(peer) = self.peers.known(proc) else {
            return;
        };
        match peer.fate.get() {
            Fate::Up | Fate::Calling => {
                self.leaving.borrow_mut().push(proc);
                if !self.busy.get() {
                    self.part_from_all();
                }
            }
            Fate::Fresh | Fate::Lost => self.peers.forget(proc),
        }
    }

    /// Returns true if a peer from which this process must disconnect is connected now.
    pub(super) fn has_to_part(&self) -> bool {
        let is_up = |peer: &Peer| peer.fate.get() == Fate::Up;
        let leaving = self.leaving.borrow();
        leaving
            .iter()
            .any(|&proc| self.peers.known(proc).is_some_and(is_up))
    }

    /// Disconnects from those peers in `leaving` that are connected now.
    #[cold]
    pub(super) fn part_from_all(&self) {
        self.leaving.borrow_mut().retain(|&proc| {
            let Some(peer) = self.peers.known(proc) else {
                return false;
            };
            // A communicator may contain the peer again. Then this process does not disconnect.
            if !self.names.is_unused(proc) {
                return false;
            }
            match peer.fate.get() {
                Fate::Calling => return true,
                Fate::Up if !peer.has_spoken.get() => return false,
                Fate::Up => self.set_aside(peer),
                Fate::Fresh | Fate::Lost => {}
            }
            self.peers.forget(proc);
            false
        });
    }
}
