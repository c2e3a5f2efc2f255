//! How a process leaves: everything that was taken goes out, then a goodbye, then the peers' goodbyes are waited for.
//! Where a lent frame is left half there is no goodbye, so the peer learns that something is missing.

use super::frame::{Frame, Kind};
use super::peer::{Fate, Peer};
use super::rendezvous_points::Met;
use super::{SHUTDOWN, Tcp};
use crate::btl::{Am, Btl, Header, Payload, ProcId, Sink};
use rustix::net::Shutdown;
use std::cell::OnceCell;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

impl Tcp {
    /// Drops what comes as long as some peer is such, or for [`SHUTDOWN`].
    pub(super) fn wait_while(&self, some: impl Fn(&Peer) -> bool) {
        let deadline = Instant::now() + SHUTDOWN;
        let mut nap = Duration::from_micros(10);
        let peers = || self.peers.iter().filter_map(OnceCell::get);
        while peers().any(|peer| some(peer)) && Instant::now() < deadline {
            self.poll(&Nobody);
            self.bury();
            std::thread::sleep(nap);
            nap = (nap * 2).min(Duration::from_millis(1));
        }
    }

    /// Behind everything else that was taken.
    pub(super) fn send_goodbye(&self) {
        self.settle();
        let goodbye = Frame {
            kind: Kind::Goodbye,
            am: 0,
            header: [0; 2],
            len: 0,
        };
        for peer in self.peers.iter().filter_map(OnceCell::get) {
            let met = peer.socket.borrow();
            if let (Fate::Up, Some(Met { socket, .. })) = (peer.fate.get(), &*met) {
                let mut outgoing = peer.outgoing.borrow_mut();
                if outgoing.is_empty() {
                    let nothing = Payload::Bytes(&[]);
                    let _ = outgoing.send(Some(socket.as_fd()), &goodbye.encode(), nothing);
                }
                let _ = rustix::net::shutdown(socket, Shutdown::Write);
            }
        }
    }
}

/// Drops what comes while a process leaves.
struct Nobody;

impl Sink for Nobody {
    fn deliver(&self, _: ProcId, _: Am, _: Header, _: &[u8]) {}
}
