//! Connection setup: outgoing and incoming connections until both ends are authenticated.
//!
//! **Racing.** An attempt tries the peer's addresses in order, a new one whenever the last has failed or has not answered for [`STAGGER`]
//! (after RFC 8305, "Happy Eyeballs"), or for [`GREETED`] after it has accepted the connection; all that were started stay in the race.
//! The first that answers with a correct challenge wins, and the others are closed.
//! So an unreachable address costs a short delay, not the job.
//! An answer has no time limit, because a peer may compute for an hour before it polls.
//! A peer that has left MPI does not listen, and listens again on the same port when it comes back (a session after `MPI_Finalize`);
//! so an address that refuses is tried again, for the time given to [`Connector::call`].
//!
//! **Simultaneous connections.** Two processes that connect to each other keep one connection: that of the process with the lower name, within a job the lower rank.
//! The other process drops its own attempt
//! when the connection from the process with the lower name is authenticated.
//! The lower process keeps an authenticated incoming connection in reserve until its own attempt has ended, since possibly only one direction works.
//!
//! **A connected peer that connects again** either has closed the old connection, whose disconnect message this process has not read yet,
//! or is about to drop its attempt (simultaneous connections). So the new connection is kept in reserve, too, until the old one has ended.
//!
//! **Unknown clients** are dropped at the first wrong message.
//! Silent ones are dropped after [`PATIENCE`], and at most [`MOST_ACCEPTED`] incoming connections are held; beyond that, the oldest one without a valid hello, or else the oldest one, is dropped.
//! A peer that is dropped in this way sees its connection closed and connects again ([`RETRIES`]).

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

/// How long an address may be silent before the next one joins the race.
const STAGGER: Duration = Duration::from_millis(50);
/// The response time limit for an address that has accepted the connection:
/// the process may be computing.
const GREETED: Duration = Duration::from_millis(500);
/// Delay after a refusal before the same address is tried again.
const REFUSED_PAUSE: Duration = Duration::from_millis(10);
/// Time limit for the hello of an incoming connection.
const PATIENCE: Duration = Duration::from_secs(5);
/// Maximum number of incoming connections that are not handed over.
const MOST_ACCEPTED: usize = 128;
/// Maximum number of connections accepted per call.
const DOOR: usize = 32;
/// How often an address is tried again that closed a connection before it answered.
const RETRIES: u32 = 50;

/// The epoll token of all sockets of the connector.
pub const TOKEN: u64 = u64::MAX;

pub struct Connector {
    /// The name of this process.
    me: u64,
    names: Arc<dyn Names>,
    link: u32,
    key: Key,
    listeners: Listeners,
    buffers: Buffers,
    guests: Vec<Accepted>,
    calls: Vec<Call>,
}

/// A result of [`Connector::progress`].
pub enum News {
    Met(Met),
    /// No address of a peer answered; the error of each one.
    Failed {
        proc: ProcId,
        why: String,
    },
}

/// The state of a peer, as the owner of the connector knows it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// The peer is connected.
    Connected,
    /// The peer is not connected, and a connection may be made.
    No,
    /// The peer is lost or unknown.
    Never,
}

/// The result of one step of a handshake.
enum Step {
    Waiting,
    /// The handshake has advanced; call again.
    On,
    Done,
    /// No process listens there now.
    Refused(String),
    Over(String),
}

/// Returns an unpredictable number.
fn nonce() -> Result<Nonce, String> {
    let random = Key::random().map_err(|error| error.to_string())?;
    let mut nonce = Nonce::default();
    nonce.copy_from_slice(&random.bytes()[..size_of::<Nonce>()]);
    Ok(nonce)
}

impl Connector {
    /// Listens on `port`; 0 lets the system choose one.
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

    /// Refuses every connection until [`reopen`](Self::reopen); keeps the port.
    pub fn close(&mut self) {
        self.guests.clear();
        self.listeners.close(self.buffers);
    }

    /// Listens again.
    pub fn reopen(&mut self, epoll: BorrowedFd<'_>) -> Result<(), Errno> {
        self.listeners.reopen(self.buffers)?;
        self.listeners.watch(epoll)
    }

    /// Returns true if [`progress`](Self::progress) must be called even if no descriptor is ready.
    pub fn is_waiting(&self) -> bool {
        !self.calls.is_empty() || self.guests.iter().any(Accepted::is_in_reserve)
    }

    /// Makes progress on all attempts and incoming connections.
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
