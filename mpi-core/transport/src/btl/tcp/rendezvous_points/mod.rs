//! Where connections are made: calls to peers, guests that call us, and nothing that has not proved itself gets out of here.
//!
//! **Racing.** A call tries the peer's addresses in their order, a new one whenever the last has failed or has not answered for [`STAGGER`]
//! (after RFC 8305, "Happy Eyeballs"); all that were begun stay in the race.
//! The first that answers with the right challenge wins, whatever its address, and the others are closed.
//! So an address that leads nowhere costs a moment, not the job.
//! There is no time limit on an answer, because a peer may compute for an hour before it looks.
//! A peer that has left MPI does not listen, and listens again at the same port when it comes back (a session after `MPI_Finalize`);
//! so an address that refuses is called again, for as long as the caller of [`Connector::call`] says.
//!
//! **Two that call each other** keep one connection: that of the process with the lower name, which in a job is the lower rank.
//! The other gives its own call up when the lower one's guest has proved itself;
//! the lower one keeps a proven guest in reserve until its own call has ended, for it may be that only one direction works.
//!
//! **A peer that is connected and calls** has parted from the connection, of which this process has not read the goodbye yet;
//! or its call is one that it is about to give up, as above. So its guest is kept in reserve, too, until that connection has ended.
//!
//! **Strangers** are dropped at the first byte that is wrong.
//! Those that stay silent are dropped after [`PATIENCE`], and at most [`MOST_ACCEPTED`] are in the room: a flood turns out those that have said least and waited longest.
//! A peer that is turned out that way sees its connection closed and calls again ([`RETRIES`]).

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

/// How long an address may keep silent before the next one joins the race.
const STAGGER: Duration = Duration::from_millis(50);
/// How long after a refusal the same address is called again.
const REFUSED_PAUSE: Duration = Duration::from_millis(10);
/// How long a guest may take to say which process it is.
const PATIENCE: Duration = Duration::from_secs(5);
/// Guests in the room at once.
const MOST_ACCEPTED: usize = 128;
/// Guests let in at one look.
const DOOR: usize = 32;
/// How often an address is tried again that has closed a connection before it answered.
const RETRIES: u32 = 50;

/// What the poller reports for everything in here.
pub const TOKEN: u64 = u64::MAX;

pub struct Connector {
    /// What this process is called.
    me: u64,
    names: Arc<dyn Names>,
    link: u32,
    key: Key,
    listeners: Listeners,
    buffers: Buffers,
    guests: Vec<Accepted>,
    calls: Vec<Call>,
}

/// What came of a look around.
pub enum News {
    Met(Met),
    /// No address of a peer answered; what each one said.
    Failed {
        proc: ProcId,
        why: String,
    },
}

/// Where the lobby stands with a peer, as its owner knows it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// There is a connection.
    Connected,
    /// There is none, and one may be made.
    No,
    /// The peer is lost, or stands for no process.
    Never,
}

/// What has become of a connection in here.
enum Step {
    Waiting,
    /// It has got on; look at it again.
    On,
    Done,
    /// No process listens there, now.
    Refused(String),
    Over(String),
}

/// A number that cannot be guessed.
fn nonce() -> Result<Nonce, String> {
    let random = Key::random().map_err(|error| error.to_string())?;
    let mut nonce = Nonce::default();
    nonce.copy_from_slice(&random.bytes()[..size_of::<Nonce>()]);
    Ok(nonce)
}

impl Connector {
    /// Listens on `port` or, if it is zero, on one the system chooses.
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
        let lobby = Connector {
            me,
            names,
            link,
            key,
            listeners,
            buffers,
            guests: Vec::new(),
            calls: Vec::new(),
        };
        Ok((lobby, port))
    }

    /// Has the poller tell when a peer calls.
    pub fn watch(&self, epoll: BorrowedFd<'_>) -> Result<(), Errno> {
        self.listeners.watch(epoll)
    }

    /// Every caller is refused from now on, until [`reopen`](Self::reopen); the port stays this process's.
    pub fn close(&mut self) {
        self.guests.clear();
        self.listeners.close(self.buffers);
    }

    /// Listens again.
    pub fn reopen(&mut self, epoll: BorrowedFd<'_>) -> Result<(), Errno> {
        self.listeners.reopen(self.buffers)?;
        self.listeners.watch(epoll)
    }

    /// Whether it wants to be looked at even if no descriptor is ready.
    pub fn is_waiting(&self) -> bool {
        !self.calls.is_empty() || self.guests.iter().any(Accepted::is_in_reserve)
    }

    /// Looks at everything once.
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
