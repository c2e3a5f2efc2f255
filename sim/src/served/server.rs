//! The server's sockets: one thread, one `poll`, nothing that one guest can make another wait for.
//!
//! In each turn every guest is read once, then every guest is sent what waits for them, then newcomers are accepted.
//! Releases are sent before answers, so that a node that hears of a release by an answer and wakes its neighbours
//! finds that they have been told.

use super::board::Board;
use super::hub::{GuestId, Hub};
use super::line::prepare;
use super::notice::{Ended, Notice};
use fpga_model::BadNodeCount;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

/// The longest sleep; then the caller is asked whether to go on.
const NAP: Duration = Duration::from_millis(100);
/// Newcomers in one turn, so that a crowd of them does not hold up the nodes.
const NEWCOMERS: usize = 8;
/// Bytes of one guest in one turn.
const BYTES: usize = 256;

/// A board and the sockets that it is served by.
#[derive(Debug)]
pub struct Server {
    hub: Hub,
    listener: TcpListener,
    address: SocketAddr,
    streams: BTreeMap<GuestId, TcpStream>,
    start: Instant,
    /// The system had no descriptor left for a newcomer; it is asked again after a nap.
    full: bool,
}

/// Why a board cannot be served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServeError {
    /// No barrier has this many nodes.
    Nodes(BadNodeCount),
    /// The address cannot be listened at.
    Listen {
        /// The address.
        at: String,
        /// What the system said.
        cause: String,
    },
    /// The system does not tell when sockets are ready.
    Poll {
        /// What it said.
        cause: String,
    },
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nodes(bad) => bad.fmt(f),
            Self::Listen { at, cause } => {
                write!(f, "the board cannot be served at {at}: {cause}")
            }
            Self::Poll { cause } => {
                write!(
                    f,
                    "the board cannot be served any longer, the system does not wait for its sockets: {cause}"
                )
            }
        }
    }
}

impl std::error::Error for ServeError {}

impl Server {
    /// A board of `nodes` nodes as after power-on, served at `at`: an address and a port, of which 0 is any.
    pub fn bind(nodes: usize, at: &str) -> Result<Self, ServeError> {
        Self::serve(Board::toggle(nodes).map_err(ServeError::Nodes)?, at)
    }

    /// The same for a board of version 2.
    pub fn bind_channels(nodes: usize, at: &str) -> Result<Self, ServeError> {
        Self::serve(Board::channels(nodes).map_err(ServeError::Nodes)?, at)
    }

    fn serve(board: Board, at: &str) -> Result<Self, ServeError> {
        let hub = Hub::new(board);
        let failed = |e: std::io::Error| ServeError::Listen {
            at: at.to_owned(),
            cause: e.to_string(),
        };
        let places: Vec<SocketAddr> = at.to_socket_addrs().map_err(failed)?.collect();
        let listener = TcpListener::bind(places.as_slice()).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self {
            hub,
            listener,
            address,
            streams: BTreeMap::new(),
            start: Instant::now(),
            full: false,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether any guest is connected: a node or an onlooker.
    pub fn is_attended(&self) -> bool {
        self.hub.is_attended()
    }

    /// How often the barrier has released its nodes.
    pub fn releases(&self) -> u64 {
        self.hub.releases()
    }

    /// Serves the guests that are ready, or sleeps until one is, for a tenth of a second at most; returns what happened.
    pub fn turn(&mut self) -> Result<Vec<Notice>, ServeError> {
        let ready = self.sleep()?;
        for id in ready {
            self.read(id);
        }
        self.write();
        self.accept();
        self.hub.sweep(self.start.elapsed());
        // A guest that the hub has given up loses the connection.
        let Self { streams, hub, .. } = self;
        streams.retain(|id, _| hub.has(*id));
        Ok(self.hub.notices())
    }

    /// Sleeps until a socket is ready; the guests that can be read.
    fn sleep(&mut self) -> Result<Vec<GuestId>, ServeError> {
        let now = self.start.elapsed();
        let deadline = self.hub.deadline().map(|at| at.saturating_sub(now));
        let nap = deadline.map_or(NAP, |deadline| deadline.min(NAP));
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: nap.subsec_nanos().into(),
        };
        let mut sockets = Vec::with_capacity(self.streams.len() + 1);
        for (id, stream) in &self.streams {
            let waits = self.hub.outgoing(*id).is_some();
            let writable = if waits {
                PollFlags::OUT
            } else {
                PollFlags::empty()
            };
            sockets.push(PollFd::new(stream, PollFlags::IN | writable));
        }
        if !std::mem::take(&mut self.full) && self.hub.has_room(now) {
            sockets.push(PollFd::new(&self.listener, PollFlags::IN));
        }
        match poll(&mut sockets, Some(&timeout)) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(Vec::new()),
            Err(e) => {
                return Err(ServeError::Poll {
                    cause: e.to_string(),
                });
            }
        }
        let guests = self.streams.keys().zip(&sockets);
        Ok(guests
            .filter(|(_, socket)| socket.revents().intersects(!PollFlags::OUT))
            .map(|(id, _)| *id)
            .collect())
    }

    /// Reads a guest once.
    fn read(&mut self, id: GuestId) {
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        let mut bytes = [0; BYTES];
        let now = self.start.elapsed();
        match stream.read(&mut bytes) {
            Ok(0) => self.hub.end(id, Ended::Closed, now),
            Ok(count) => self.hub.hear(id, &bytes[..count], now),
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(e) => self.hub.end(id, Ended::Broken(e.to_string()), now),
        }
    }

    /// Sends what waits, to those first that have not asked for it.
    fn write(&mut self) {
        let ids: Vec<_> = self.streams.keys().copied().collect();
        let (told, asked): (Vec<_>, Vec<_>) =
            ids.into_iter().partition(|id| self.hub.has_news(*id));
        for id in told.into_iter().chain(asked) {
            self.send(id);
        }
    }

    fn send(&mut self, id: GuestId) {
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        while let Some(waiting) = self.hub.outgoing(id) {
            match stream.write(waiting) {
                Ok(count) => drop(waiting.drain(..count.min(waiting.len()))),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                Err(e) => {
                    let now = self.start.elapsed();
                    return self.hub.end(id, Ended::Broken(e.to_string()), now);
                }
            }
        }
        if self.hub.is_leaving(id) {
            // Its last word must not be lost: the connection stays until the guest has closed its end, or its time is over.
            let _ = stream.shutdown(Shutdown::Write);
        }
    }

    fn accept(&mut self) {
        for _ in 0..NEWCOMERS {
            if !self.hub.has_room(self.start.elapsed()) {
                return;
            }
            match self.listener.accept() {
                Ok((stream, peer)) => {
                    let ready = stream.set_nonblocking(true).is_ok() && prepare(&stream).is_ok();
                    // A connection that has broken already needs nothing.
                    if ready {
                        let id = self.hub.arrive(peer, self.start.elapsed());
                        self.streams.insert(id, stream);
                        self.send(id);
                    }
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                // Connections that broke while they waited are none; a lack of descriptors is asked about later.
                Err(_) => {
                    self.full = true;
                    return;
                }
            }
        }
    }
}
