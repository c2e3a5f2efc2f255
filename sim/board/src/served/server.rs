//! The sockets of the board server: one thread and one `poll`; no client can block another.
//!
//! Each call of [`Server::turn`] reads each client once,
//! sends pending output, then accepts new clients.
//! Releases are sent before answers: a node that reads a release in an answer wakes the other nodes
//! of its host, and these nodes must then find the release in their sockets.

use super::board::{Board, Channels, Toggle};
use super::hub::{ClientId, Hub};
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

/// Maximum time that one call of [`Server::turn`] sleeps;
/// then its caller decides whether to continue.
const NAP: Duration = Duration::from_millis(100);
/// Maximum number of new clients accepted per call, so that they do not delay the nodes.
const NEWCOMERS: usize = 8;
/// Maximum number of bytes read from a client per call.
const BYTES: usize = 256;

/// A board and the sockets that serve it.
#[derive(Debug)]
pub struct Server {
    hub: Hub,
    listener: TcpListener,
    address: SocketAddr,
    streams: BTreeMap<ClientId, TcpStream>,
    start: Instant,
    /// True if the last accept failed for lack of a file descriptor;
    /// the server retries after a sleep.
    full: bool,
}

/// The reason why a board cannot be served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServeError {
    /// A barrier cannot have this number of nodes.
    Nodes(BadNodeCount),
    /// The server cannot listen at the address.
    Listen {
        /// The address at which the server was to listen.
        at: String,
        /// The error that the system reported.
        cause: String,
    },
    /// The system's `poll` failed.
    Poll {
        /// The error that the system reported.
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
    /// Serves a board of `nodes` nodes in its state after power-on.
    /// `at` is an address and a port; port 0 selects a free port.
    pub fn bind(nodes: usize, at: &str) -> Result<Self, ServeError> {
        Self::serve(Toggle::new(nodes).map_err(ServeError::Nodes)?, at)
    }

    /// Like [`bind`](Self::bind), for a board of version 2.
    pub fn bind_channels(nodes: usize, at: &str) -> Result<Self, ServeError> {
        Self::serve(Channels::new(nodes).map_err(ServeError::Nodes)?, at)
    }

    fn serve(board: impl Board + 'static, at: &str) -> Result<Self, ServeError> {
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

    /// Returns the address at which the server listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns true if any node or observer is connected.
    pub fn is_attended(&self) -> bool {
        self.hub.is_attended()
    }

    /// Returns the barrier's number of releases.
    pub fn releases(&self) -> u64 {
        self.hub.releases()
    }

    /// Serves the clients that are ready. If none is, sleeps for at most 0.1 s until one is ready.
    /// Returns the notices for the log.
    pub fn turn(&mut self) -> Result<Vec<Notice>, ServeError> {
        let ready = self.sleep()?;
        for id in ready {
            self.read(id);
        }
        self.write();
        self.accept();
        self.hub.sweep(self.start.elapsed());
        // Clients that the hub has removed lose their connections.
        let Self { streams, hub, .. } = self;
        streams.retain(|id, _| hub.has(*id));
        Ok(self.hub.notices())
    }

    /// Sleeps until a socket is ready; returns the clients that have data to read.
    fn sleep(&mut self) -> Result<Vec<ClientId>, ServeError> {
        let now = self.start.elapsed();
        let deadline = self.hub.deadline().map(|at| at.saturating_sub(now));
        let nap = deadline.map_or(NAP, |deadline| deadline.min(NAP));
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: nap.subsec_nanos().into(),
        };
        let mut sockets = Vec::with_capacity(self.streams.len() + 1);
        for (id, stream) in &self.streams {
            let is_waiting = self.hub.outgoing(*id).is_some();
            let writable = if is_waiting {
                PollFlags::OUT
            } else {
                PollFlags::empty()
            };
            sockets.push(PollFd::new(stream, PollFlags::IN | writable));
        }
        if !std::mem::take(&mut self.full) && self.hub.can_accept(now) {
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
        let clients = self.streams.keys().zip(&sockets);
        Ok(clients
            .filter(|(_, socket)| socket.revents().intersects(!PollFlags::OUT))
            .map(|(id, _)| *id)
            .collect())
    }

    /// Reads at most [`BYTES`] bytes from a client.
    fn read(&mut self, id: ClientId) {
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        let mut bytes = [0; BYTES];
        let now = self.start.elapsed();
        match stream.read(&mut bytes) {
            Ok(0) => self.hub.end(id, Ended::Closed, now),
            Ok(count) => self.hub.receive(id, &bytes[..count], now),
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(e) => self.hub.end(id, Ended::Broken(e.to_string()), now),
        }
    }

    /// Sends the pending output, first that of clients with a release to report.
    fn write(&mut self) {
        let ids: Vec<_> = self.streams.keys().copied().collect();
        let (signal, asked): (Vec<_>, Vec<_>) =
            ids.into_iter().partition(|id| self.hub.has_news(*id));
        for id in signal.into_iter().chain(asked) {
            self.send(id);
        }
    }

    fn send(&mut self, id: ClientId) {
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
            // The client must receive the last reply: the connection stays open until the
            // client has closed its end, or until the client's time limit has expired.
            let _ = stream.shutdown(Shutdown::Write);
        }
    }

    fn accept(&mut self) {
        for _ in 0..NEWCOMERS {
            if !self.hub.can_accept(self.start.elapsed()) {
                return;
            }
            match self.listener.accept() {
                Ok((stream, peer)) => {
                    let ready = stream.set_nonblocking(true).is_ok() && prepare(&stream).is_ok();
                    // A connection whose options cannot be set is already broken, and is dropped.
                    if ready {
                        let id = self.hub.arrive(peer, self.start.elapsed());
                        self.streams.insert(id, stream);
                        self.send(id);
                    }
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                // A connection that broke before it was accepted is ignored;
                // without a free file descriptor, the server accepts again later.
                Err(_) => {
                    self.full = true;
                    return;
                }
            }
        }
    }
}
