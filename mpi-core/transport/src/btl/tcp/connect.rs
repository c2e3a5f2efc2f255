//! Connection setup: selection of the addresses to try, and the transition to an established connection.

use super::address::{self, Candidate, Local};
use super::address_record::{AddressRecord, PER_NETWORK};
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

/// The beginning of the value that a process publishes instead of an address record if its transport cannot be opened;
/// the reason follows. An address record begins with its version instead.
const NOT_OPEN: &[u8] = b"not open: ";

/// The maximum length of a published reason in bytes: values of launchers are limited to 900 digits, two for each byte.
const LONGEST_REASON: usize = 400;

/// Returns the value that a process publishes if its transport cannot be opened.
pub(super) fn not_open(reason: &str) -> Vec<u8> {
    let reason = reason.bytes().take(LONGEST_REASON);
    NOT_OPEN.iter().copied().chain(reason).collect()
}

impl Tcp {
    /// Reads a peer's address record at the first call. Returns the peer's key and the addresses to try.
    pub(super) fn candidates(&self, peer: &Peer) -> Result<(Key, Vec<Candidate>), String> {
        let mut known = peer.card.borrow_mut();
        let card = match &mut *known {
            Some(card) => card,
            unknown => unknown.insert(self.card(peer.proc())?),
        };
        let link = self.link as usize;
        let ours = &self.ours.addresses;
        let is_inside = card.machine == self.ours.machine;
        let is_per_network = self.ours.links & PER_NETWORK != 0;
        let turned = if is_per_network { 0 } else { link };
        let all = address::candidates(ours, &card.addresses, is_inside, card.port, turned);
        let candidates = match (is_per_network, is_inside) {
            (true, true) if link > 0 => return Err("it is on the same machine".into()),
            (true, false) => self.of_network(card, all)?,
            _ => all,
        };
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

    /// Returns the addresses to try for this link: the first link tries the first common network first, every other link uses only its own network.
    fn of_network(
        &self,
        card: &AddressRecord,
        all: Vec<Candidate>,
    ) -> Result<Vec<Candidate>, String> {
        let link = self.link as usize;
        let networks = address::in_common(self.ours.published(), &card.addresses);
        let theirs = networks.get(link).map(|(_, their)| *their);
        if link == 0 {
            return Ok(address::preferring(theirs, all));
        }
        let count = networks.len();
        let its = theirs.ok_or_else(|| format!("the two machines have {count} common networks"))?;
        let is_its = |candidate: &Candidate| candidate.to.ip() == its.ip;
        Ok(all.into_iter().filter(is_its).collect())
    }

    /// Reads the address record that a peer has published for this link.
    fn card(&self, of: ProcId) -> Result<AddressRecord, String> {
        let first = self.record(of, 0)?;
        let (theirs, ours) = (first.links, self.ours.links);
        let is_per_network = theirs & ours & PER_NETWORK != 0;
        if theirs != ours && !is_per_network {
            let number = |links: u8| match links & PER_NETWORK {
                0 => links.to_string(),
                _ => "0".into(),
            };
            return Err(format!(
                "its parameter btl_tcp_links is {} and that of this process {}; it must be the same everywhere",
                number(theirs),
                number(ours)
            ));
        }
        let links = u32::from(theirs & !PER_NETWORK);
        match self.link {
            0 => Ok(first),
            link if link < links => self.record(of, link),
            _ => Err(format!("it has {links} networks")),
        }
    }

    fn record(&self, of: ProcId, link: u32) -> Result<AddressRecord, String> {
        let bytes = self.modex.get(of, &modex_key(link))?;
        if let Some(reason) = bytes.strip_prefix(NOT_OPEN) {
            let reason = String::from_utf8_lossy(reason);
            return Err(format!("its transport tcp is not open: {reason}"));
        }
        let record =
            AddressRecord::decode(&bytes).ok_or("its published address record is malformed")?;
        Ok(record)
    }

    /// Listens again, because this process has started a new session after it has left MPI. Called in `progress`.
    #[cold]
    pub(super) fn come_back(&self) {
        // Another process may have taken the port. Then the next call of `progress` tries again;
        // until it succeeds, this process can connect to its peers, but they cannot connect to it.
        let reopened = self.connector.borrow_mut().reopen(self.epoll.as_fd());
        self.away.set(reopened.is_err());
    }

    /// Returns the time during which a peer that refuses connections is tried again; `None` means without a limit.
    /// If processes leave MPI and start a new session,
    /// a peer may refuse connections for an unlimited time until it listens again,
    /// and the launcher ends the job if the peer has died.
    /// Otherwise a firewall can be the cause of a refusal, so a process must not wait without a limit.
    fn patience(&self, peer: &Peer) -> Option<Duration> {
        let may_be_away = peer.was_up.get() || self.has_left.get();
        (!may_be_away).then_some(self.settings.refused_for)
    }

    /// Starts a connection to a peer.
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

    /// Sets the connection state of a peer, and notifies [`Names`](crate::btl::Names) when its connection starts or ends.
    pub(super) fn turn(&self, peer: &Peer, fate: Fate) {
        let before = peer.fate.replace(fate);
        match (before.is_linked(), fate.is_linked()) {
            (false, true) => self.names.connected(peer.proc()),
            (true, false) => self.names.disconnected(peer.proc()),
            _ => {}
        }
    }

    /// Makes an authenticated connection the established connection to its peer, and sends the queued frames.
    pub(super) fn welcome(&self, met: Met) {
        let Some(peer) = self.peer(met.proc) else {
            return;
        };
        let token = epoll::EventData::new_u64(met.proc.into());
        let ready = self
            .settings
            .prepare(&met)
            .and_then(|()| epoll::modify(&self.epoll, &met.socket, token, epoll::EventFlags::IN));
        // A connection whose options cannot be set is closed. The peer detects this, and the next message starts a new connection.
        if ready.is_err() {
            return self.turn(peer, Fate::Fresh);
        }
        *peer.socket.borrow_mut() = Some(met);
        peer.megabits.set(self.speed(peer));
        *peer.network.borrow_mut() = self.network_of(peer);
        *peer.incoming.borrow_mut() = Some(Incoming::new(self.info.limits.max_send));
        self.turn(peer, Fate::Up);
        peer.was_up.set(true);
        peer.is_second.set(self.is_still_read(peer.proc()));
        self.up.borrow_mut().push(peer.proc());
        self.flush(peer);
    }

    /// Returns the network of this machine's address in the connection to a peer; `None` if the address is unknown.
    fn network_of(&self, peer: &Peer) -> Option<String> {
        let local = peer.socket.borrow().as_ref().and_then(|met| met.local)?;
        let mut ours = self.ours.addresses.iter();
        let ours = ours.find(|address| address.ip == local.ip())?;
        Some(ours.network())
    }

    /// Returns the speed of the peer's interface in the connection, in Mbit/s; 0 if unknown.
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
        // The loss of a process of another job is not reported if no communicator contains the process.
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
