//! The transport between machines: TCP over every address both ends have, IPv4 and IPv6.
//!
//! **Finding each other.** Each process listens on one port and makes a [`card`] known through the launcher: its addresses, the port, and a random key.
//! A connection is made when it is first needed; all addresses are raced, both ends prove themselves, strangers get nowhere ([`lobby`], [`hello`]).
//! Until then what is sent waits.
//!
//! **Sending** writes header and payload in one call, straight from the caller's memory ([`outgoing`]).
//! **Receiving** takes many short frames in one call and long payloads straight to where they are wanted ([`incoming`]).
//! Up to [`DIRECT`] connections are read without asking whether something is there, which is faster while somebody waits for it;
//! the poller is asked now and then, for connections that are begun or are many.
//!
//! **Ending.** A process that leaves says goodbye behind its last frame.
//! A stream that ends otherwise is a lost peer, of whom the sink is told in one sentence that names both ends and what the system said.
//!
//! Where a parameter asks for several links, this component opens as many transports, each with a port and connections of its own;
//! they begin with different networks. Using them together is the BML's business.
//!
//! Who may touch what: [`lobby::Lobby`] owns every connection that is not established, a [`Peer`] every one that is; nothing is shared between threads.

mod address;
mod card;
mod frame;
mod hello;
mod incoming;
mod lobby;
mod outgoing;
mod params;
#[cfg(test)]
mod tests;

use super::{
    Am, Btl, Component, Endpoint, Header, Limits, Noticeboard, OpenError, Payload, ProcId, Reach,
    SELECTION, SendError, Sink, Surroundings, Transport,
};
use crate::rte;
use address::{Candidate, Local};
use card::Card;
use frame::{Frame, Kind};
use incoming::{End, Incoming, Turn};
use lobby::{Lobby, Met, News, Settled};
use mpi_base::fdpass::Key;
use mpi_base::param::ParamError;
use outgoing::{Outgoing, Refused};
use params::Settings;
use rustix::event::{Timespec, epoll};
use rustix::net::Shutdown;
use std::cell::{Cell, OnceCell, RefCell};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// So many connections are read without asking the poller first; a read in vain costs about as much as a question.
const DIRECT: usize = 4;
/// The poller is asked once in so many looks while nothing is known to wait there.
const ASK: u32 = 64;
/// Events taken from the poller at once.
const EVENTS: usize = 64;
/// How long a process that leaves waits for its last frames to be taken, and then for its peers' goodbyes.
const FAREWELL: Duration = Duration::from_secs(2);

pub(super) const COMPONENT: Component = Component {
    name: "tcp",
    params: params::PARAMS,
    open,
    posts: |around| is_needed(around).unwrap_or(true),
};

/// Whether some process of the job can be reached in no better way.
fn is_needed(around: &Surroundings<'_>) -> Result<bool, ParamError> {
    let by_memory = around.is_one_node() && around.params.get(&SELECTION)?.allows("sm");
    Ok(around.size > 1 && !by_memory)
}

fn open(around: &Surroundings<'_>) -> Result<Vec<Transport>, OpenError> {
    if !is_needed(around).map_err(OpenError::Param)? {
        return Err(OpenError::NotNeeded);
    }
    let settings = Settings::read(around.params).map_err(OpenError::Param)?;
    (0..settings.links)
        .map(|link| Ok(Box::new(Tcp::open(around, &settings, link)?) as Transport))
        .collect()
}

struct Tcp {
    me: ProcId,
    link: u32,
    settings: Settings,
    limits: Limits,
    board: Arc<dyn Noticeboard>,
    ours: Card,
    epoll: OwnedFd,
    lobby: RefCell<Lobby>,
    peers: Vec<OnceCell<Box<Peer>>>,
    /// Who is connected.
    up: RefCell<Vec<ProcId>>,
    /// Whose connection has ended and is to be closed.
    ended: RefCell<Vec<ProcId>>,
    /// Looks since the poller was last asked.
    looks: Cell<u32>,
    /// How many peers' sockets had no room when they were last asked.
    stuck: Cell<usize>,
    /// Whether a send was refused since we last went to sleep.
    starving: Cell<bool>,
    /// Set while the sink runs.
    busy: Cell<bool>,
}

/// A process we have had to do with.
struct Peer {
    proc: ProcId,
    fate: Cell<Fate>,
    card: OnceCell<Result<Card, String>>,
    socket: RefCell<Option<Met>>,
    megabits: Cell<u32>,
    outgoing: RefCell<Outgoing>,
    incoming: RefCell<Option<Incoming>>,
    /// The poller reports when the socket is writable.
    stuck: Cell<bool>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Fresh,
    Calling,
    Up,
    Lost,
}

impl Peer {
    fn new(proc: ProcId) -> Peer {
        Peer {
            proc,
            fate: Cell::new(Fate::Fresh),
            card: OnceCell::new(),
            socket: RefCell::default(),
            megabits: Cell::new(0),
            outgoing: RefCell::default(),
            incoming: RefCell::default(),
            stuck: Cell::new(false),
        }
    }

    /// Forgets the connection; the next message makes a new one.
    fn reset(&self) {
        self.fate.set(Fate::Fresh);
        self.outgoing.take();
        self.incoming.take();
        self.socket.take();
    }
}

impl Tcp {
    fn open(around: &Surroundings<'_>, settings: &Settings, link: u32) -> Result<Tcp, OpenError> {
        let board = around.board.clone().ok_or_else(|| OpenError::NoBoard {
            reason: "there is no launcher".into(),
        })?;
        let system =
            |doing: &'static str| move |reason: String| OpenError::System { doing, reason };
        let addresses = address::of_this_machine(&settings.filter)
            .map_err(|error| system("listing this machine's addresses")(error.to_string()))?;
        if addresses.is_empty() {
            return Err(OpenError::NoAddress {
                parameters: params::FILTERS.into(),
            });
        }
        let key = Key::random().map_err(|e| system("drawing a random key")(e.to_string()))?;
        let (lobby, port) = Lobby::open(
            around.me,
            around.size,
            link,
            key,
            settings.port(link),
            settings.buffers,
        )
        .map_err(|e| system("listening on a TCP port")(lobby::text(e)))?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)
            .map_err(|e| system("making a poller")(lobby::text(e)))?;
        let token = epoll::EventData::new_u64(lobby::TOKEN);
        epoll::add(&epoll, lobby.listener(), token, epoll::EventFlags::IN)
            .map_err(|e| system("watching a TCP port")(lobby::text(e)))?;
        let ours = Card {
            links: settings.links as u8,
            port,
            machine: rte::machine(),
            key,
            addresses,
        };
        board
            .put(&board_key(link), &ours.encode())
            .map_err(|reason| OpenError::NoBoard { reason })?;
        Ok(Tcp {
            me: around.me,
            link,
            limits: settings.limits,
            settings: settings.clone(),
            board,
            ours,
            epoll,
            lobby: RefCell::new(lobby),
            peers: (0..around.size).map(|_| OnceCell::new()).collect(),
            up: RefCell::default(),
            ended: RefCell::default(),
            looks: Cell::new(0),
            stuck: Cell::new(0),
            starving: Cell::new(false),
            busy: Cell::new(false),
        })
    }

    fn peer(&self, proc: ProcId) -> Option<&Peer> {
        let cell = self.peers.get(proc as usize)?;
        Some(cell.get_or_init(|| Box::new(Peer::new(proc))))
    }

    /// A peer's card, read once, with the addresses worth trying.
    fn candidates(&self, peer: &Peer) -> Result<(Key, Vec<Candidate>), String> {
        let card = peer.card.get_or_init(|| {
            let bytes = self.board.get(peer.proc, &board_key(self.link))?;
            let card = Card::decode(&bytes).ok_or("what it made known is not a card of ours")?;
            if card.links != self.ours.links {
                return Err(format!(
                    "it has {} links and this process {}; btl_tcp_links must be the same everywhere",
                    card.links, self.ours.links
                ));
            }
            Ok(card)
        });
        let card = card.as_ref().map_err(String::clone)?;
        let candidates = address::candidates(
            &self.ours.addresses,
            &card.addresses,
            card.machine == self.ours.machine,
            card.port,
            self.link as usize,
        );
        if candidates.is_empty() {
            let shown: Vec<String> = card.addresses.iter().map(|a| a.ip.to_string()).collect();
            return Err(format!(
                "none of its addresses ({}) can be reached from another machine",
                shown.join(", ")
            ));
        }
        Ok((card.key, candidates))
    }

    /// Begins to make a connection.
    #[cold]
    fn call(&self, peer: &Peer) -> Result<(), SendError> {
        let begun =
            self.candidates(peer)
                .and_then(|(key, candidates)| match self.lobby.try_borrow_mut() {
                    Ok(mut lobby) => lobby.call(peer.proc, key, candidates),
                    Err(_) => Err("a connection is being made".into()),
                });
        match begun {
            Ok(()) => {
                peer.fate.set(Fate::Calling);
                Ok(())
            }
            Err(_) => Err(SendError::PeerGone),
        }
    }

    /// Takes over an established connection.
    fn welcome(&self, met: Met) {
        let Some(peer) = self.peer(met.proc) else {
            return;
        };
        let token = epoll::EventData::new_u64(met.proc.into());
        let ready = self
            .settings
            .prepare(&met.socket)
            .and_then(|()| epoll::modify(&self.epoll, &met.socket, token, epoll::EventFlags::IN));
        // A connection that cannot be prepared is closed; the other end sees that and this one will call again.
        if ready.is_err() {
            peer.fate.set(Fate::Fresh);
            return;
        }
        *peer.socket.borrow_mut() = Some(met);
        peer.megabits.set(self.speed(peer));
        *peer.incoming.borrow_mut() = Some(Incoming::new(self.limits.max_send));
        peer.fate.set(Fate::Up);
        self.up.borrow_mut().push(peer.proc);
        self.flush(peer);
    }

    /// The slower of the two interfaces that a connection uses, as far as it is known.
    fn speed(&self, peer: &Peer) -> u32 {
        let remote = peer.socket.borrow().as_ref().and_then(|met| met.remote);
        let card = peer.card.get().and_then(|card| card.as_ref().ok());
        let theirs = |card: &Card| {
            let at = |local: &&Local| Some(local.ip) == remote.map(|r| r.ip());
            card.addresses.iter().find(at).map(|local| local.megabits)
        };
        card.and_then(theirs).unwrap_or(0)
    }

    /// Writes what waits for a peer, and asks the poller if there is no room for it.
    #[cold]
    fn flush(&self, peer: &Peer) {
        let met = peer.socket.borrow();
        let (Some(met), Ok(mut outgoing)) = (&*met, peer.outgoing.try_borrow_mut()) else {
            return;
        };
        // A failed write is not the end: what the peer sent before is still to be read, and reading will find out.
        let _ = outgoing.flush(met.socket.as_fd());
        self.ask_for_room(peer, outgoing.is_stuck());
    }

    /// Keeps the poller's mind about a socket in step with the queue.
    fn ask_for_room(&self, peer: &Peer, stuck: bool) {
        if peer.stuck.get() == stuck {
            return;
        }
        let met = peer.socket.borrow();
        let Some(Met { socket, .. }) = &*met else {
            return;
        };
        let mut events = epoll::EventFlags::IN;
        events.set(epoll::EventFlags::OUT, stuck);
        let token = epoll::EventData::new_u64(peer.proc.into());
        if epoll::modify(&self.epoll, socket, token, events).is_ok() {
            peer.stuck.set(stuck);
            let count = self.stuck.get();
            self.stuck.set(if stuck { count + 1 } else { count - 1 });
        }
    }

    /// Reads from one peer.
    #[inline]
    fn receive(&self, peer: &Peer, sink: &dyn Sink) -> usize {
        let met = peer.socket.borrow();
        let (Some(met), Ok(mut incoming)) = (&*met, peer.incoming.try_borrow_mut()) else {
            return 0;
        };
        let Some(reader) = &mut *incoming else {
            return 0;
        };
        let Turn { delivered, end } = reader.progress(met.socket.as_fd(), peer.proc, sink);
        if let Some(end) = end {
            *incoming = None;
            self.part(peer, met, end, sink);
        }
        delivered
    }

    /// A connection has ended; it is closed when nobody looks at it any more.
    #[cold]
    fn part(&self, peer: &Peer, met: &Met, end: End, sink: &dyn Sink) {
        self.up.borrow_mut().retain(|&proc| proc != peer.proc);
        self.ask_for_room(peer, false);
        let _ = epoll::delete(&self.epoll, &met.socket);
        self.ended.borrow_mut().push(peer.proc);
        let why = match end {
            End::Goodbye => return,
            End::Closed => {
                "the other end was closed without a goodbye, so its process has died".into()
            }
            End::Garbled(error) => error.to_string(),
            End::System(error) => lobby::text(error),
        };
        // Nothing more can be meant for somebody whose stream cannot be believed.
        let _ = rustix::net::shutdown(&met.socket, Shutdown::Both);
        self.lose(peer, &format!("({}) was lost: {why}", met.ends), sink);
    }

    /// Closes what has ended; a peer that said goodbye may be met again.
    #[cold]
    fn bury(&self) {
        for proc in self.ended.take() {
            if let Some(peer) = self.peer(proc) {
                let lost = peer.fate.get() == Fate::Lost;
                peer.reset();
                if lost {
                    peer.fate.set(Fate::Lost);
                }
            }
        }
    }

    #[cold]
    fn lose(&self, peer: &Peer, what: &str, sink: &dyn Sink) {
        peer.fate.set(Fate::Lost);
        let (me, proc) = (self.me, peer.proc);
        sink.lost(
            proc,
            &format!("the connection between job ranks {me} and {proc} {what}"),
        );
    }

    /// Asks the poller what there is to do, and does it.
    #[cold]
    fn poll(&self, sink: &dyn Sink) -> usize {
        self.looks.set(0);
        let mut events = [const { MaybeUninit::<epoll::Event>::uninit() }; EVENTS];
        let Ok((events, _)) = epoll::wait(&self.epoll, &mut events, Some(&Timespec::default()))
        else {
            return 0;
        };
        let mut delivered = 0;
        let mut guests = false;
        for event in events {
            let token = { event.data }.u64();
            let Some(peer) = u32::try_from(token).ok().and_then(|proc| self.peer(proc)) else {
                guests = true;
                continue;
            };
            let flags = { event.flags };
            if flags.contains(epoll::EventFlags::OUT) {
                self.flush(peer);
            }
            if flags.intersects(!epoll::EventFlags::OUT) {
                delivered += self.receive(peer, sink);
            }
        }
        if guests || self.lobby.borrow().is_waiting() {
            self.look_into_the_lobby(sink);
        }
        delivered
    }

    #[cold]
    fn look_into_the_lobby(&self, sink: &dyn Sink) {
        let mut news = Vec::new();
        let settled = |proc| match self.peer(proc).map(|peer| peer.fate.get()) {
            Some(Fate::Fresh | Fate::Calling) => Settled::No,
            _ => Settled::Yes,
        };
        self.lobby
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

    /// Drops what comes as long as some peer is such, or for [`FAREWELL`].
    fn wait_while(&self, some: impl Fn(&Peer) -> bool) {
        let deadline = Instant::now() + FAREWELL;
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
    fn say_goodbye(&self) {
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

    /// One look at everything.
    #[inline]
    fn look(&self, sink: &dyn Sink) -> usize {
        let mut delivered = 0;
        let direct = {
            let up = self.up.borrow();
            let mut direct = [ProcId::MAX; DIRECT];
            match up.len() {
                n @ 0..=DIRECT => direct[..n].copy_from_slice(&up),
                _ => self.looks.set(ASK),
            }
            direct
        };
        for proc in direct {
            if let Some(peer) = self.peers.get(proc as usize).and_then(OnceCell::get) {
                delivered += self.receive(peer, sink);
            }
        }
        if !self.ended.borrow().is_empty() {
            self.bury();
        }
        let looks = self.looks.get() + 1;
        self.looks.set(looks);
        if looks > ASK || self.stuck.get() > 0 || self.lobby.borrow().is_waiting() {
            delivered += self.poll(sink);
        }
        delivered
    }
}

/// The noticeboard's key for one link's cards.
fn board_key(link: u32) -> String {
    format!("btl-tcp-{link}")
}

impl Btl for Tcp {
    fn name(&self) -> &'static str {
        "tcp"
    }

    fn exclusivity(&self) -> u32 {
        100
    }

    fn limits(&self) -> Limits {
        self.limits
    }

    fn reach(&self, peer: ProcId) -> Reach {
        if peer == self.me {
            return Reach::No("it is this process itself".into());
        }
        match self.peer(peer).map(|peer| self.candidates(peer)) {
            Some(Ok(_)) => Reach::Yes(Endpoint(peer)),
            Some(Err(why)) => Reach::No(why),
            None => Reach::No(format!("the job has {} ranks", self.peers.len())),
        }
    }

    fn is_costly(&self) -> bool {
        true
    }

    #[inline]
    fn send(
        &self,
        to: Endpoint,
        am: Am,
        header: Header,
        payload: Payload<'_>,
    ) -> Result<(), SendError> {
        let (len, max) = (payload.len(), self.limits.max_send);
        if len > max {
            return Err(SendError::TooLong { len, max });
        }
        let peer = self.peer(to.0).ok_or(SendError::PeerGone)?;
        match peer.fate.get() {
            Fate::Up | Fate::Calling => {}
            Fate::Fresh => self.call(peer)?,
            Fate::Lost => return Err(SendError::PeerGone),
        }
        // A `fill` that sends to the peer it is filling for gets "would block", like any send that comes too early.
        let Ok(mut outgoing) = peer.outgoing.try_borrow_mut() else {
            return Err(SendError::WouldBlock);
        };
        let frame = Frame {
            kind: Kind::Message,
            am,
            header,
            len,
        };
        let met = peer.socket.borrow();
        let socket = met.as_ref().map(|met| met.socket.as_fd());
        match outgoing.send(socket, &frame.encode(), payload) {
            Ok(()) => {
                self.ask_for_room(peer, outgoing.is_stuck());
                Ok(())
            }
            Err(Refused::Full) => {
                self.starving.set(true);
                Err(SendError::WouldBlock)
            }
            // Reading will find out too, and then the peer is lost for everybody.
            Err(Refused::System(_)) => Err(SendError::PeerGone),
        }
    }

    #[inline]
    fn progress(&self, sink: &dyn Sink) -> usize {
        // The sink called us; the round that runs will go on after it.
        if self.busy.replace(true) {
            return 0;
        }
        let delivered = self.look(sink);
        self.busy.set(false);
        delivered
    }

    fn pending(&self) -> bool {
        if self.busy.get() {
            return true;
        }
        if self.starving.replace(false) {
            let room = |proc: &ProcId| {
                self.peer(*proc)
                    .is_some_and(|peer| peer.outgoing.borrow().has_room())
            };
            if self.up.borrow().iter().any(room) {
                return true;
            }
        }
        let mut events = [const { MaybeUninit::<epoll::Event>::uninit() }; 1];
        epoll::wait(&self.epoll, &mut events, Some(&Timespec::default()))
            .is_ok_and(|(events, _)| !events.is_empty())
    }

    fn descriptors<'a>(&'a self, all: &mut Vec<BorrowedFd<'a>>) {
        all.push(self.epoll.as_fd());
    }

    fn cut(&self, to: Endpoint) {
        if let Some(peer) = self.peer(to.0)
            && let Some(met) = &*peer.socket.borrow()
        {
            // Reading finds the end at both sides.
            let _ = rustix::net::shutdown(&met.socket, Shutdown::Both);
        }
    }

    fn settle(&self) {
        self.wait_while(|peer| {
            matches!(peer.fate.get(), Fate::Up | Fate::Calling)
                && !peer.outgoing.borrow().is_empty()
        });
    }

    /// After the goodbye the peers' goodbyes are waited for: a socket that is closed with something unread in it
    /// takes back what the other end has not read yet (RFC 1122, 4.2.2.13).
    fn leave(&self) {
        self.say_goodbye();
        self.wait_while(|peer| peer.fate.get() == Fate::Up);
        self.up.take();
        self.ended.take();
        self.stuck.set(0);
        for peer in self.peers.iter().filter_map(OnceCell::get) {
            peer.stuck.set(false);
            peer.reset();
        }
    }

    fn bandwidth(&self, to: Endpoint) -> u32 {
        match (self.settings.megabits, self.peer(to.0)) {
            (0, Some(peer)) if peer.megabits.get() > 0 => peer.megabits.get(),
            (0, _) => self.ours.addresses[0].megabits,
            (set, _) => set,
        }
    }
}

/// Drops what comes while a process leaves.
struct Nobody;

impl Sink for Nobody {
    fn deliver(&self, _: ProcId, _: Am, _: Header, _: &[u8]) {}
}

impl Drop for Tcp {
    fn drop(&mut self) {
        self.say_goodbye();
    }
}
