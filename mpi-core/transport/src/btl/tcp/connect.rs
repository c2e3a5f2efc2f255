//! Connection setup: candidate addresses, and the transition to an established connection.

use super::address::{self, Candidate, Local};
use super::address_record::AddressRecord;
use super::incoming::Incoming;
use super::peer::{Fate, Peer};
use super::rendezvous_points::{Met, News, Settled};
use super::{Tcp, modex_key};
use crate::btl::peers::Place;
use crate::btl::{ProcId, SendError, Sink};
use crate::rte;
use mpi_base::fdpass::Key;
use rustix::event::epoll;
use std::os::fd::AsFd;
use std::time::Duration;

impl Tcp {
    /// Reads a peer's address record once; returns its key and the addresses to try.
    pub(super) fn candidates(&self, peer: &Peer) -> Result<(Key, Vec<Candidate>), String> {
        let mut known = peer.card.borrow_mut();
        let card = match &mut *known {
            Some(card) => card,
            unknown => unknown.insert(self.card(peer.proc())?),
        };
        let candidates = address::candidates(
            &self.ours.addresses,
            &card.addresses,
            card.machine == self.ours.machine,
            card.port,
            self.link as usize,
        );
        if candidates.is_empty() {
            let shown: Vec<String> = card.addresses.iter().map(|a| a.ip.to_string()).collect();
            let unknown = rte::unknown_machine().map(|why| format!(": {why}"));
            return Err(format!(
                "none of its addresses ({}) can be reached from another machine{}",
                shown.join(", "),
                unknown.unwrap_or_default()
            ));
        }
        Ok((card.key, candidates))
    }

    /// Reads the address record that a peer has published.
    fn card(&self, of: ProcId) -> Result<AddressRecord, String> {
        let bytes = self.modex.get(of, &modex_key(self.link))?;
        let card =
            AddressRecord::decode(&bytes).ok_or("its published address record is malformed")?;
        if card.links != self.ours.links {
            return Err(format!(
                "it has {} links and this process {}; btl_tcp_links must be the same everywhere",
                card.links, self.ours.links
            ));
        }
        Ok(card)
    }

    /// Listens again: this process makes progress, so it has returned to MPI.
    #[cold]
    pub(super) fn come_back(&self) {
        // Another process may have taken the port meanwhile; the next call of `progress` tries again,
        // and until then this process can still connect to its peers.
        let reopened = self.connector.borrow_mut().reopen(self.epoll.as_fd());
        self.away.set(reopened.is_err());
    }

    /// Returns how long a peer that refuses connections is tried again; `None`: without a limit.
    /// If processes leave MPI and come back, a peer may stay away for as long as its program likes,
    /// and the launcher ends the job if it has died.
    /// Otherwise a refusal can also come from a firewall, and then no process may wait without a limit.
    fn patience(&self, peer: &Peer) -> Option<Duration> {
        let may_be_away = peer.was_up.get() || self.has_left.get();
        (!may_be_away).then_some(self.settings.refused_for)
    }

    /// Starts a connection.
    #[cold]
    pub(super) fn call(&self, peer: &Peer) -> Result<(), SendError> {
        if self.names.is_unused(peer.proc()) {
            return Err(SendError::PeerGone);
        }
        let begun = self.candidates(peer).and_then(|(key, candidates)| {
            match self.connector.try_borrow_mut() {
                Ok(mut connector) => {
                    connector.call(peer.proc(), key, candidates, self.patience(peer))
                }
                Err(_) => Err("a connection is being made".into()),
            }
        });
        match begun {
            Ok(()) => {
                self.turn(peer, Fate::Calling);
                Ok(())
            }
            Err(_) => Err(SendError::PeerGone),
        }
    }

    /// Sets the state of a peer, and notifies [`Names`](crate::btl::Names) when its connection starts or ends.
    pub(super) fn turn(&self, peer: &Peer, fate: Fate) {
        let before = peer.fate.replace(fate);
        match (before.is_linked(), fate.is_linked()) {
            (false, true) => self.names.connected(peer.proc()),
            (true, false) => self.names.disconnected(peer.proc()),
            _ => {}
        }
    }

    /// Takes over an established connection.
    pub(super) fn welcome(&self, met: Met) {
        let Some(peer) = self.peer(met.proc) else {
            return;
        };
        let token = epoll::EventData::new_u64(met.proc.into());
        let ready = self
            .settings
            .prepare(&met)
            .and_then(|()| epoll::modify(&self.epoll, &met.socket, token, epoll::EventFlags::IN));
        // A connection that cannot be configured is closed; the other end notices it, and this process connects again.
        if ready.is_err() {
            return self.turn(peer, Fate::Fresh);
        }
        *peer.socket.borrow_mut() = Some(met);
        peer.megabits.set(self.speed(peer));
        *peer.incoming.borrow_mut() = Some(Incoming::new(self.info.limits.max_send));
        self.turn(peer, Fate::Up);
        peer.was_up.set(true);
        peer.is_second.set(self.is_still_read(peer.proc()));
        self.up.borrow_mut().push(peer.proc());
        self.flush(peer);
    }

    /// Returns the speed of the peer's interface of this connection; 0 if unknown.
    fn speed(&self, peer: &Peer) -> u32 {
        let remote = peer.socket.borrow().as_ref().and_then(|met| met.remote);
        let card = peer.card.borrow();
        let theirs = |card: &AddressRecord| {
            let at = |local: &&Local| Some(local.ip) == remote.map(|r| r.ip());
            card.addresses.iter().find(at).map(|local| local.megabits)
        };
        card.as_ref().and_then(theirs).unwrap_or(0)
    }

    #[cold]
    pub(super) fn progress_connections(&self, sink: &dyn Sink) {
        let mut news = Vec::new();
        let settled = |proc| match self.peer(proc).map(|peer| peer.fate.get()) {
            Some(Fate::Fresh | Fate::Calling) => Settled::No,
            Some(Fate::Up) => Settled::Connected,
            Some(Fate::Lost) | None => Settled::Never,
        };
        self.connector
            .borrow_mut()
            .progress(self.epoll.as_fd(), settled, &mut news);
        for news in news {
            match news {
                News::Met(met) => self.welcome(met),
                News::Failed { proc, why } => {
                    if let Some(peer) = self.peer(proc) {
                        self.lose(peer, &format!("could not be made: {why}"), sink);
                    }
                }
            }
        }
    }

    #[cold]
    pub(super) fn lose(&self, peer: &Peer, what: &str, sink: &dyn Sink) {
        let is_unused = self.names.is_unused(peer.proc());
        self.turn(peer, Fate::Lost);
        // The loss of a process without references is not reported.
        if is_unused {
            return;
        }
        let ends = self.names.ends(self.me, peer.proc());
        sink.lost(
            peer.proc(),
            &format!("the connection between {ends} {what}"),
        );
    }
}
