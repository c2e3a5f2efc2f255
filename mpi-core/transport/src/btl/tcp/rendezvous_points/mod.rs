//! Connection setup: outgoing and incoming connections until both processes are authenticated.
//!
//! **Racing.** A connection attempt tries the peer's addresses in order. The next address is tried if the last one has failed or has not replied for [`STAGGER`]
//! (as in RFC 8305, "Happy Eyeballs"), or for [`GREETED`] if it has accepted the connection. All addresses that were tried remain in the race.
//! The first address that replies with a valid challenge wins, and the other connections are closed.
//! So an unreachable address only causes a short delay.
//! A reply has no time limit, because a peer may compute for an hour before it polls.
//! A peer that has left MPI does not listen. It listens again on the same port when it starts a new session after `MPI_Finalize`.
//! So an address that refuses connections is tried again, for the time passed to [`Connector::call`].
//!
//! **Simultaneous connections.** If two processes connect to each other at the same time, the connection of the process with the lower name is used; within a job, this is the lower rank.
//! The other process abandons its own attempt
//! when the connection from the process with the lower name is authenticated.
//! The lower process holds an authenticated incoming connection in reserve until its own attempt has ended, because connections may be possible in one direction only.
//!
//! **If a connected peer connects again**, it either has closed the old connection, whose disconnect message this process has not read yet,
//! or will abandon its attempt (simultaneous connections). So the new connection is also held in reserve until the old one has ended.
//!
//! **Unknown clients** are dropped at the first invalid message.
//! Clients that send nothing are dropped after [`PATIENCE`]. At most [`MOST_ACCEPTED`] incoming connections are open; if one more arrives, the oldest one without a valid hello is dropped, or else the oldest one.
//! A peer that is dropped in this way detects the end of its connection and connects again ([`RETRIES`]).

mod acceptor;
mod dialer;
mod listeners;
mod socket;

pub use listeners::On;
pub use socket::{Buffers, Met, text};

use super::hello::Nonce;
use crate::btl::{Names, ProcId};
use acceptor::Accepted;
use dialer::Call;
use listeners::Listeners;
use mpi_base::fdpass::Key;
use rustix::io::Errno;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time after which the next address is tried if no address has accepted the connection.
const STAGGER: Duration = Duration::from_millis(50);
/// Time after which the next address is tried if an address has accepted the connection but has
/// not replied; longer than [`STAGGER`], because the accepting process may be computing.
const GREETED: Duration = Duration::from_millis(500);
/// Delay after a refusal before the same address is tried again.
const REFUSED_PAUSE: Duration = Duration::from_millis(10);
/// Time limit for the hello of an incoming connection.
const PATIENCE: Duration = Duration::from_secs(5);
/// Maximum number of incoming connections that are not yet established.
const MOST_ACCEPTED: usize = 128;
/// Maximum number of connections that one call accepts.
const DOOR: usize = 32;
/// Number of times that an address is tried again if it closed a connection before it replied.
const RETRIES: u32 = 50;

/// The epoll token of all sockets of the connector.
pub const TOKEN: u64 = u64::MAX;

pub struct Connector {
    /// The name of this process, as in the hello.
    me: u64,
    names: Arc<dyn Names>,
    link: u32,
    key: Key,
    listeners: Listeners,
    buffers: Buffers,
    guests: Vec<Accepted>,
    calls: Vec<Call>,
}

/// An event that [`Connector::progress`] returns.
pub enum News {
    Met(Met),
    /// The connection attempt to a peer has failed; `why` contains the error of each address.
    Failed {
        proc: ProcId,
        why: String,
    },
}

/// The connection state of a peer, as the owner of the connector reports it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// The peer is connected.
    Connected,
    /// The peer is not connected, but a connection is permitted.
    No,
    /// The peer is lost or unknown; no connection is permitted.
    Never,
}

/// The result of one step in a handshake.
enum Step {
    Waiting,
    /// The handshake has advanced; the next step must be executed.
    On,
    Done,
    /// The connection was refused; the text is the reason.
    Refused(String),
    Over(String),
}

/// Returns a random number for one handshake.
fn nonce() -> Result<Nonce, String> {
    let random = Key::random().map_err(|error| error.to_string())?;
    let mut nonce = Nonce::default();
    nonce.copy_from_slice(&random.bytes()[..size_of::<Nonce>()]);
    Ok(nonce)
}

impl Connector {
    /// Creates a connector that listens on `port`; if it is 0, the system chooses a port. Also returns the port.
    pub fn open(
        me: u64,
        names: Arc<dyn Names>,
        link: u32,
        key: Key,
        (on, port): (On, u16),
        buffers: Buffers,
    ) -> Result<(Connector, u16), Errno> {
        let listeners = Listeners::open(on, port, buffers)?;
        let port = listeners.port();
        let connector = Connector {
            me,
            names,
            link,
            key,
            listeners,
            buffers,
            guests: Vec::new(),
            calls: Vec::new(),
        };
        Ok((connector, port))
    }

    /// Registers the listeners with epoll.
    pub fn watch(&self, epoll: BorrowedFd<'_>) -> Result<(), Errno> {
        self.listeners.watch(epoll)
    }

    /// Refuses every connection until [`reopen`](Self::reopen), but reserves the port.
    pub fn close(&mut self) {
        self.guests.clear();
        self.listeners.close(self.buffers);
    }

    /// Listens again on the reserved port.
    pub fn reopen(&mut self, epoll: BorrowedFd<'_>) -> Result<(), Errno> {
        self.listeners.reopen(self.buffers)?;
        self.listeners.watch(epoll)
    }

    /// Gives up the connection attempt to a peer, if there is one, without an event.
    pub fn abandon(&mut self, proc: ProcId) {
        self.calls.retain(|call| call.proc != proc);
    }

    /// Returns true if [`progress`](Self::progress) must be called even if no descriptor is ready.
    pub fn is_waiting(&self) -> bool {
        !self.calls.is_empty() || self.guests.iter().any(Accepted::is_in_reserve)
    }

    /// Makes progress on all connection attempts and incoming connections. Adds events to `news`.
    pub fn progress(
        &mut self,
        epoll: BorrowedFd<'_>,
        settled: impl Fn(ProcId) -> Settled,
        news: &mut Vec<News>,
    ) {
        let now = Instant::now();
        self.let_in(epoll, now);
        self.read_accepted(&settled, now, news);
        let mut calls = std::mem::take(&mut self.calls);
        calls.retain_mut(|call| self.advance(call, epoll, now, news));
        self.calls = calls;
    }
}
