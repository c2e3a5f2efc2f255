//! Shutdown of the transport `tcp`: writes all queues, sends disconnect messages, then waits for the peers' disconnect messages.

use super::parting::Parting;
use super::peer::Fate;
use super::{SHUTDOWN, Tcp};
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
        peers.any(|peer| {
            matches!(peer.fate.get(), Fate::Up | Fate::Calling)
                && peer.outgoing.borrow().is_on_its_way()
        }) || self.parting.borrow().iter().any(Parting::is_on_its_way)
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
