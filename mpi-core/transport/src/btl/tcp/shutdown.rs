//! Shutdown of the transport `tcp`: writes all queues, sends disconnect messages, then waits for the peers' disconnect messages.

use super::outgoing::Outgoing;
use super::parting::Parting;
use super::peer::{Fate, Peer};
use super::{SHUTDOWN, Tcp};
use crate::btl::peers::Place;
use crate::btl::{Am, Connections, Header, ProcId, Sink};
use std::time::{Duration, Instant};

impl Tcp {
    /// Polls and discards arriving messages while `something` returns true, for at most [`SHUTDOWN`].
    pub(super) fn wait_while(&self, something: impl Fn() -> bool) {
        let deadline = Instant::now() + SHUTDOWN;
        let mut nap = Duration::from_micros(10);
        while something() && Instant::now() < deadline {
            self.poll(&Discard);
            self.close_ended();
            std::thread::sleep(nap);
            nap = (nap * 2).min(Duration::from_millis(1));
        }
    }

    /// Returns true if queued bytes are still to be written to any peer.
    pub(super) fn is_sending(&self) -> bool {
        let mut peers = self.peers.iter();
        let is_sending = |peer: &Peer| {
            let is_linked = peer.fate.get().is_linked() && !peer.is_abandoned.get();
            is_linked && peer.outgoing.borrow().is_on_its_way()
        };
        let parting = self.parting.borrow();
        let mut parting = parting.iter();
        peers.any(is_sending)
            || parting.any(|parting| parting.is_on_its_way() && !self.is_abandoned(parting.proc()))
    }

    /// Returns true if the disconnect message of a peer that is not abandoned has not arrived yet.
    pub(super) fn awaits_disconnect(&self) -> bool {
        let parting = self.parting.borrow();
        let mut procs = parting.iter().map(Parting::proc);
        procs.any(|proc| !self.is_abandoned(proc))
    }

    fn is_abandoned(&self, proc: ProcId) -> bool {
        let peer = self.peers.known(proc);
        peer.is_some_and(|peer| peer.is_abandoned.get())
    }

    /// Discards a peer whose process has ended: a connection that is being made is given up, and
    /// an established one is read to its end, but not waited for.
    pub(super) fn abandon_peer(&self, peer: &Peer) {
        match peer.fate.get() {
            Fate::Fresh => peer.fate.set(Fate::Lost),
            Fate::Calling => {
                // The connector is only borrowed while it makes progress, which calls no function of this transport.
                if let Ok(mut connector) = self.connector.try_borrow_mut() {
                    connector.abandon(peer.proc());
                }
                if let Ok(mut outgoing) = peer.outgoing.try_borrow_mut() {
                    *outgoing = Outgoing::default();
                }
                self.turn(peer, Fate::Lost);
            }
            Fate::Up | Fate::Lost => {}
        }
        peer.is_abandoned.set(true);
    }

    /// Writes all queues, then starts the shutdown of every connection.
    pub(super) fn send_goodbye(&self) {
        Connections::flush(self);
        for peer in self.peers.iter() {
            if peer.fate.get() == Fate::Up {
                self.set_aside(peer);
            }
        }
    }
}

/// A sink that discards messages that arrive during the shutdown.
struct Discard;

impl Sink for Discard {
    fn deliver(&self, _: ProcId, _: Am, _: Header, _: &[u8]) {}
}
