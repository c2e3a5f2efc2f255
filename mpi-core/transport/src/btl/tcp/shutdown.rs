//! How a process leaves: everything that was taken goes out, then a goodbye, then the peers' goodbyes are waited for.
//! Where a lent frame is left half there is no goodbye, so the peer learns that something is missing.

use super::frame::{Frame, Kind};
use super::peer::{Fate, Peer};
use super::rendezvous_points::Met;
use super::{SHUTDOWN, Tcp};
use crate::btl::{Am, Btl, Header, Payload, ProcId, Sink};
use rustix::net::Shutdown;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

impl Tcp {
    /// Drops what comes as long as some peer is such, or for [`SHUTDOWN`].
    pub(super) fn wait_while(&self, some: impl Fn(&Peer) -> bool) {
        let deadline = Instant::now() + SHUTDOWN;
        let mut nap = Duration::from_micros(10);
        let peers = || self.peers.iter();
        while peers().any(&some) && Instant::now() < deadline {
            self.poll(&Discard);
            self.bury();
            std::thread::sleep(nap);
            nap = (nap * 2).min(Duration::from_millis(1));
        }
    }

    /// Behind everything else that was taken.
    pub(super) fn send_goodbye(&self) {
        self.settle();
        self.peers.iter().for_each(|peer| self.say_goodbye(peer));
    }

    /// Behind everything else that was taken for one peer.
    fn say_goodbye(&self, peer: &Peer) {
        let goodbye = Frame {
            kind: Kind::Goodbye,
            am: 0,
            header: [0; 2],
            len: 0,
        };
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

    /// Ends the connection to one peer in order; nothing more is meant for it, and its goodbye closes the connection.
    pub(super) fn part_from(&self, proc: ProcId) {
        let Some(peer) = self.peers.known(proc) else {
            return;
        };
        match peer.fate.get() {
            Fate::Up | Fate::Calling => {
                peer.is_leaving.set(true);
                self.leaving.borrow_mut().push(proc);
                self.part_from_all();
            }
            Fate::Fresh | Fate::Lost => self.peers.forget(proc),
        }
    }

    /// Says goodbye to those that are parted from, as soon as everything that was taken for them is out of this process's hands.
    #[cold]
    pub(super) fn part_from_all(&self) {
        self.leaving.borrow_mut().retain(|&proc| {
            let Some(peer) = self.peers.known(proc) else {
                return false;
            };
            let waits = match peer.fate.get() {
                Fate::Calling => true,
                Fate::Up => peer.outgoing.borrow().is_on_its_way(),
                Fate::Fresh | Fate::Lost => {
                    self.peers.forget(proc);
                    return false;
                }
            };
            if !waits {
                self.say_goodbye(peer);
            }
            waits
        });
    }
}

/// Drops what comes while a process leaves.
struct Discard;

impl Sink for Discard {
    fn deliver(&self, _: ProcId, _: Am, _: Header, _: &[u8]) {}
}
