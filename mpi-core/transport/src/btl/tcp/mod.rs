//! `tcp`, the transport between machines: TCP over all addresses of both machines, IPv4 and IPv6.
//!
//! **Addresses.** Each process listens on one port and publishes an [`address_record`] through the launcher. It contains the process's addresses, the port, and a random key.
//! A process connects to a peer when it first needs the peer. Connections to all addresses race, and both processes authenticate themselves ([`rendezvous_points`], [`hello`]).
//! Messages are queued until the connection is established.
//!
//! **Sending** writes header and payload in one system call, directly from the caller's memory ([`outgoing`]). Fragments of long messages are sent without a copy ([`Lending`]).
//! **Receiving** reads many short frames in one system call, and long payloads directly to their destination ([`incoming`]).
//! If there are up to [`DIRECT`] connections, all are read without an epoll call, which is faster while a thread waits for data.
//! In one of [`ASK`] calls epoll is polled, for new connections and for connections beyond [`DIRECT`].
//!
//! **Shutdown.** A process that leaves MPI or disconnects from a peer sends a disconnect message after its last frame, and continues to read until the peer's disconnect message arrives.
//! A disconnect message belongs to one connection: two processes may connect again while their old connection is still being closed ([`parting`]).
//! If a stream ends without a disconnect message, the peer is lost. The text for the sink contains both processes and the system's reason.
//!
//! The component opens one transport per link, each with its own port and connections, and the BML bonds the transports.
//! By default there is one link for each network that both machines have in common ([`address::in_common`]), and each link except the first uses only its network.
//! If a parameter sets the number of links, each link may use every network, and the links begin with different networks.
//!
//! Ownership: [`rendezvous_points::Connector`] owns every connection that is not yet established, and a [`Peer`] every established one. Threads share nothing.
//! The methods of [`Tcp`] for connections are in [`connect`], [`poll`], [`parting`] and [`shutdown`].

mod address;
pub(crate) mod address_record;
mod connect;
pub(crate) mod frame;
pub(crate) mod hello;
pub(crate) mod incoming;
mod outgoing;
mod params;
mod parting;
mod peer;
mod poll;
mod rendezvous_points;
mod shutdown;
#[cfg(test)]
mod tests;

use super::names::JobNames;
use super::peers::Peers;
use super::{
    Am, Btl, Capabilities, Component, Connections, Endpoint, Header, Info, Lending, Limits, Modex,
    Names, OpenContext, OpenError, Payload, ProcId, Reach, SendError, Sink, Traffic, Transport,
    Wakeup,
};
use crate::rte;
use crate::universe::Universe;
use address::Local;
use address_record::{AddressRecord, PER_NETWORK};
use frame::Frame;
use mpi_base::fdpass::Key;
use mpi_base::param::Params;
use outgoing::{Outgoing, Refused};
use params::Settings;
use peer::{Fate, Peer};
use rendezvous_points::{Connector, On};
use rustix::event::{Timespec, epoll};
use rustix::net::Shutdown;
use std::cell::{Cell, RefCell};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

/// Maximum number of connections that are read without an epoll call. A read without data takes about as long as an epoll call.
const DIRECT: usize = 4;
/// Maximum length of an address record in bytes. With the record of `sm` it must fit into a port name of 255 characters, the size of buffers in programs and other libraries.
const IN_PORT_NAME: usize = 112;
/// Number of calls of `look` per epoll call, while no event is expected.
const ASK: u32 = 64;
/// Maximum number of events that one epoll call returns.
const EVENTS: usize = 64;
/// The epoll token of connections that are being closed.
const PARTING: u64 = rendezvous_points::TOKEN - 1;
/// Time limit of a process that shuts down, for writing its last frames and again for the disconnect messages of its peers.
const SHUTDOWN: Duration = Duration::from_secs(2);

pub(super) const COMPONENT: Component = Component {
    name: "tcp",
    params: params::PARAMS,
    open,
    posts: |context| context.needs_network().unwrap_or(true),
};

fn open(context: &OpenContext<'_>) -> Result<Vec<Transport>, OpenError> {
    if !context.needs_network().map_err(OpenError::Param)? {
        return Err(OpenError::NotNeeded);
    }
    let settings = Settings::read(context.params).map_err(OpenError::Param)?;
    let opened = open_links(context, &settings);
    if let (Err(error), Some(modex)) = (&opened, &context.modex) {
        // If the value is not published, the peers report that it is missing.
        let _ = modex.put(&modex_key(0), &connect::not_open(&error.to_string()));
    }
    opened
}

fn open_links(context: &OpenContext<'_>, settings: &Settings) -> Result<Vec<Transport>, OpenError> {
    let addresses = addresses(settings)?;
    (0..settings.links_for(&addresses, context.size))
        .map(|link| {
            let names = Arc::new(JobNames { size: context.size });
            let tcp = Tcp::open(context, settings, link, names, addresses.clone())?;
            Ok(Box::new(tcp) as Transport)
        })
        .collect()
}

/// Opens the transport to processes of other jobs, which are in `universe`. The transport publishes this process's addresses on its card,
/// and reads the peers' addresses from their cards.
pub fn open_to_other_jobs(
    params: &Params,
    universe: &Arc<Universe>,
) -> Result<Transport, OpenError> {
    let mut settings = Settings::read(params).map_err(OpenError::Param)?;
    settings.links = 1;
    settings.most_card = IN_PORT_NAME;
    // A configured port is reserved for the connections within the job, so the system chooses the port here.
    settings.port = 0;
    let context = OpenContext {
        me: universe.me(),
        size: 0,
        node: None,
        params,
        modex: Some(universe.clone()),
    };
    let addresses = addresses(&settings)?;
    let tcp = Tcp::open(&context, &settings, 0, universe.clone(), addresses)?;
    Ok(Box::new(tcp))
}

/// Returns the addresses of this machine that the parameters permit.
fn addresses(settings: &Settings) -> Result<Vec<Local>, OpenError> {
    let addresses =
        address::of_this_machine(&settings.filter).map_err(|error| OpenError::System {
            doing: "listing this machine's addresses",
            reason: error.to_string(),
        })?;
    match addresses.is_empty() {
        true => Err(OpenError::NoAddress {
            parameters: params::FILTERS.into(),
        }),
        false => Ok(addresses),
    }
}

struct Tcp {
    me: ProcId,
    names: Arc<dyn Names>,
    link: u32,
    settings: Settings,
    info: Info,
    modex: Arc<dyn Modex>,
    ours: AddressRecord,
    epoll: OwnedFd,
    connector: RefCell<Connector>,
    peers: Peers<Peer>,
    /// The peers with an established connection.
    up: RefCell<Vec<ProcId>>,
    /// The peers whose connection has ended; their sockets must be closed.
    ended: RefCell<Vec<ProcId>>,
    /// The peers from which this process must disconnect, but which are not yet connected, or whose disconnect was requested during `progress`.
    leaving: RefCell<Vec<ProcId>>,
    /// Connections that are being closed.
    parting: RefCell<Vec<parting::Parting>>,
    /// Number of calls of `look` since the latest epoll call.
    looks: Cell<u32>,
    /// Number of peers whose socket was full at the latest write.
    stuck: Cell<usize>,
    /// True if a send was refused since this process last slept.
    wants_space: Cell<bool>,
    /// True while `progress` delivers messages to the sink.
    busy: Cell<bool>,
    /// True after this process has left MPI, until it starts a new session.
    away: Cell<bool>,
    /// True if this process has left MPI at least once.
    has_left: Cell<bool>,
    /// Number of messages that this transport has accepted. `received` is the number of messages delivered.
    sent: Cell<u64>,
    received: Cell<u64>,
}

impl Tcp {
    fn open(
        context: &OpenContext<'_>,
        settings: &Settings,
        link: u32,
        names: Arc<dyn Names>,
        addresses: Vec<Local>,
    ) -> Result<Tcp, OpenError> {
        let called = names
            .name(context.me)
            .ok_or(OpenError::NotHere { me: context.me })?;
        let modex = context.modex.clone().ok_or_else(|| OpenError::NoModex {
            reason: "there is no launcher".into(),
        })?;
        let system =
            |doing: &'static str| move |reason: String| OpenError::System { doing, reason };
        let key = Key::random().map_err(|e| system("drawing a random key")(e.to_string()))?;
        let on = match settings.filter.is_open() {
            true => On::Everywhere,
            false => On::Addresses(addresses.iter().map(|local| local.ip).collect()),
        };
        let (connector, port) = Connector::open(
            called,
            names.clone(),
            link,
            key,
            (on, settings.port(link)),
            settings.buffers,
        )
        .map_err(|e| {
            let reason = rendezvous_points::text(e);
            system("listening on a TCP port")(match settings.port(link) {
                0 => reason,
                port => format!(
                    "{reason}: the port is {port}, and btl_tcp_port is for one process per machine"
                ),
            })
        })?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)
            .map_err(|e| system("making a poller")(rendezvous_points::text(e)))?;
        connector
            .watch(epoll.as_fd())
            .map_err(|e| system("watching a TCP port")(rendezvous_points::text(e)))?;
        let mut ours = AddressRecord {
            links: match settings.links {
                0 => PER_NETWORK | settings.links_for(&addresses, context.size) as u8,
                links => links as u8,
            },
            port,
            machine: rte::machine(),
            key,
            addresses,
        };
        while ours.encode().len() > settings.most_card && ours.addresses.len() > 1 {
            ours.addresses.pop();
        }
        modex
            .put(&modex_key(link), &ours.encode())
            .map_err(|reason| OpenError::NoModex { reason })?;
        Ok(Tcp {
            me: context.me,
            names,
            link,
            info: info(settings.limits),
            settings: settings.clone(),
            modex,
            ours,
            epoll,
            connector: RefCell::new(connector),
            peers: Peers::new(context.size),
            up: RefCell::default(),
            ended: RefCell::default(),
            leaving: RefCell::default(),
            parting: RefCell::default(),
            looks: Cell::new(0),
            stuck: Cell::new(0),
            wants_space: Cell::new(false),
            busy: Cell::new(false),
            away: Cell::new(false),
            has_left: Cell::new(false),
            sent: Cell::new(0),
            received: Cell::new(0),
        })
    }

    fn peer(&self, proc: ProcId) -> Option<&Peer> {
        match self.peers.known(proc) {
            Some(peer) => Some(peer),
            // If a process number has no name, there is no such process.
            None => self.names.name(proc).and_then(|_| self.peers.meet(proc)),
        }
    }

    /// Passes a frame to the sender of a peer's connection. Starts the connection if there is none.
    #[inline]
    fn hand(
        &self,
        to: Endpoint,
        frame: Frame,
        take: impl FnOnce(&mut Outgoing, Option<BorrowedFd<'_>>) -> Result<(), Refused>,
    ) -> Result<(), SendError> {
        let (len, max) = (frame.len, self.info.limits.max_send);
        if len > max {
            return Err(SendError::TooLong { len, max });
        }
        let peer = self.peer(to.0).ok_or(SendError::PeerGone)?;
        match peer.fate.get() {
            Fate::Up | Fate::Calling => {}
            Fate::Fresh => self.call(peer)?,
            Fate::Lost => return Err(SendError::PeerGone),
        }
        peer.has_spoken.set(true);
        // If `fill` itself sends to the same peer, that send returns `WouldBlock`.
        let Ok(mut outgoing) = peer.outgoing.try_borrow_mut() else {
            return Err(SendError::WouldBlock);
        };
        let met = peer.socket.borrow();
        let socket = met.as_ref().map(|met| met.socket.as_fd());
        let taken = take(&mut outgoing, socket);
        self.ask_for_room(peer, outgoing.is_stuck());
        match taken {
            Ok(()) => {
                self.sent.set(self.sent.get() + 1);
                Ok(())
            }
            Err(Refused::Full) => {
                self.wants_space.set(true);
                Err(SendError::WouldBlock)
            }
            // The next read fails, too, and its error makes the peer lost.
            Err(Refused::System(_)) => Err(SendError::PeerGone),
        }
    }
}

/// The modex key of one link's address records.
fn modex_key(link: u32) -> String {
    format!("btl-tcp-{link}")
}

fn info(limits: Limits) -> Info {
    Info {
        name: "tcp",
        exclusivity: 100,
        is_network: true,
        limits,
        listens: true,
        poll_is_syscall: true,
        connects: true,
        relies_on_senders: false,
    }
}

impl Btl for Tcp {
    fn info(&self) -> &Info {
        &self.info
    }

    fn reach(&self, peer: ProcId) -> Reach {
        if peer == self.me {
            return Reach::No("it is this process itself".into());
        }
        if self.names.is_unused(peer) {
            return Reach::No("no communicator connects it with this process any more".into());
        }
        // If a process of another job has connected to this one, it is reachable even if its card is not known yet.
        let is_up = |peer: &Peer| peer.fate.get() == Fate::Up;
        if self.peer(peer).is_some_and(is_up) {
            return Reach::Yes(Endpoint(peer));
        }
        match self.peer(peer).map(|peer| self.candidates(peer)) {
            Some(Ok(_)) => Reach::Yes(Endpoint(peer)),
            Some(Err(why)) => Reach::No(why),
            None => Reach::No("it is no process that this one knows".into()),
        }
    }

    #[inline]
    fn send(
        &self,
        to: Endpoint,
        am: Am,
        header: Header,
        payload: Payload<'_>,
    ) -> Result<(), SendError> {
        let frame = Frame::message(am, header, payload.len());
        self.hand(to, frame, |outgoing, socket| {
            outgoing.send(socket, &frame.encode(), payload)
        })
    }

    #[inline]
    fn progress(&self, sink: &dyn Sink) -> usize {
        // The sink of a running `progress` has called this function; the running call continues afterwards.
        if self.busy.replace(true) {
            return 0;
        }
        if self.away.get() {
            self.come_back();
        }
        let delivered = self.look(sink);
        self.received.set(self.received.get() + delivered as u64);
        self.busy.set(false);
        delivered
    }

    fn pending(&self) -> bool {
        // If a connection has ended, an authenticated connection in reserve may replace it.
        if self.busy.get() || !self.ended.borrow().is_empty() || self.has_to_part() {
            return true;
        }
        if self.wants_space.replace(false) {
            let room = |proc: &ProcId| {
                let outgoing = self.peer(*proc).map(|peer| peer.outgoing.try_borrow_mut());
                outgoing.is_some_and(|mine| mine.is_ok_and(|mut mine| mine.has_room_again()))
            };
            if self.up.borrow().iter().any(room) {
                return true;
            }
        }
        let mut events = [const { MaybeUninit::<epoll::Event>::uninit() }; 1];
        epoll::wait(&self.epoll, &mut events, Some(&Timespec::default()))
            .is_ok_and(|(events, _)| !events.is_empty())
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities {
            lending: Some(self),
            connections: Some(self),
            wakeup: Some(self),
            traffic: Traffic::Counted {
                sent: self.sent.get(),
                received: self.received.get(),
            },
            ..Capabilities::default()
        }
    }
}

impl Connections for Tcp {
    fn is_connected(&self, to: Endpoint) -> bool {
        let calling = |peer: &Peer| peer.fate.get() == Fate::Calling;
        !self.peer(to.0).is_some_and(calling)
    }

    fn open(&self, to: Endpoint) -> bool {
        let Some(peer) = self.peer(to.0) else {
            return false;
        };
        if peer.fate.get() == Fate::Fresh {
            // If the connection cannot be started now, the next call of `open` tries again.
            let _ = self.call(peer);
        }
        peer.fate.get() == Fate::Up
    }

    fn network(&self, to: Endpoint) -> Option<String> {
        self.peer(to.0)?.network.borrow().clone()
    }

    fn cut(&self, to: Endpoint) {
        if let Some(peer) = self.peer(to.0)
            && let Some(met) = &*peer.socket.borrow()
        {
            // Both processes detect the end of the stream when they read.
            let _ = rustix::net::shutdown(&met.socket, Shutdown::Both);
        }
    }

    fn disconnect(&self, peer: ProcId) {
        Tcp::begin_disconnect(self, peer);
    }

    fn is_flushed(&self) -> bool {
        !self.is_sending()
    }

    fn flush(&self) {
        self.wait_while(|| self.is_sending());
    }

    fn abandon(&self, peer: ProcId) {
        if let Some(peer) = self.peers.known(peer) {
            self.abandon_peer(peer);
        }
    }

    /// Waits for the peers' disconnect messages after sending its own. If a socket is closed with unread data,
    /// the system discards data that the other process has not read (RFC 1122, 4.2.2.13).
    fn shutdown(&self) {
        self.send_goodbye();
        self.wait_while(|| self.awaits_disconnect());
        self.up.take();
        self.ended.take();
        self.leaving.take();
        self.stuck.set(0);
        for parting in self.parting.take() {
            self.names.disconnected(parting.proc());
        }
        for peer in self.peers.iter() {
            peer.stuck.set(false);
            self.turn(peer, Fate::Fresh);
            peer.reset();
        }
        self.connector.borrow_mut().close();
        self.away.set(true);
        self.has_left.set(true);
    }

    fn bandwidth(&self, to: Endpoint) -> u32 {
        match (self.settings.megabits, self.peer(to.0)) {
            (0, Some(peer)) if peer.megabits.get() > 0 => peer.megabits.get(),
            (0, _) => self.ours.addresses[0].megabits,
            (set, _) => set,
        }
    }
}

impl Wakeup for Tcp {
    fn descriptors<'a>(&'a self, all: &mut Vec<BorrowedFd<'a>>) {
        all.push(self.epoll.as_fd());
    }
}

impl Lending for Tcp {
    fn lend(&self, to: Endpoint, am: Am, header: Header, data: &[u8]) -> Result<(), SendError> {
        let frame = Frame::message(am, header, data.len());
        self.hand(to, frame, |outgoing, socket| {
            outgoing.lend(socket, frame, data)
        })
    }

    fn leave_rest(&self, to: Endpoint, am: Am, header: Header, data: &[u8]) {
        if let Some(peer) = self.peer(to.0)
            && let Ok(mut outgoing) = peer.outgoing.try_borrow_mut()
        {
            if outgoing.keep_rest(Frame::message(am, header, data.len()), data) {
                self.sent.set(self.sent.get() + 1);
            }
            let stuck = outgoing.is_stuck();
            drop(outgoing);
            if !stuck {
                self.flush(peer);
            }
        }
    }
}

impl Drop for Tcp {
    fn drop(&mut self) {
        self.send_goodbye();
    }
}
