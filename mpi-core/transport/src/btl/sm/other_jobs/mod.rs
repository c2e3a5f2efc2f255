//! Shared memory between this process and processes of other jobs on the same node.
//!
//! Two processes of different jobs have no common segment at first.
//! The process that first sends creates a two-process segment.
//! It passes the segment's descriptor to the other process's socket ([`meeting`]) and writes
//! messages immediately. The other process finds the segment when it polls its sockets.
//! If both processes send first at the same time, two segments exist.
//!
//! A process polls its segments in each call, and its sockets once in [`ASK`] calls and before it sleeps.
//! While it sleeps, the doorbells in all these segments ring at one socket of the process ([`mpi_base::descriptor_doorbell`]).
//!
//! # Disconnecting and connecting again
//!
//! A disconnect message ends one direction of one segment:
//! the sender of the message writes no more messages to *that* segment.
//! Other segments of the same two processes are not affected.
//! So one process can have disconnected and connected again while the slower process is still in the first disconnect.
//! The new connection uses a new segment, and the late disconnect message belongs to the old segment.
//!
//! * A process sends its messages through one segment, its outlet.
//!   It has created the outlet itself, or the other process has created it.
//! * A process that attaches to a new segment first reads all messages in the older segments.
//!   So a segment that this process creates can follow any earlier outlet.
//!   A segment that the other process has created becomes the outlet only
//!   if all earlier outlets are closed, because the other process must read them first.
//!   A process that has left MPI has closed its segments without waiting for the other process.
//!   So in later sessions it sends only through segments that it creates.
//! * When the last communicator that contains the other process is freed,
//!   this process sends its disconnect message only in its outlet.
//!   A segment that the other process has created and to which this process never wrote stays open:
//!   it may belong to the next connection.
//! * A process replies to a disconnect message with its own, after it has read all messages.
//!   The exception is this process's outlet, if a communicator still contains the other process:
//!   then this process continues to write, and the other process to read,
//!   until this process disconnects.
//! * When both processes have sent their disconnect message, each reads the other's messages to the end
//!   and confirms this: it ends its direction of the segment's socket.
//!   A process closes a segment that is or was its outlet when the other process has confirmed,
//!   so an open segment shows that messages may be left unread.
//!   It closes another segment immediately, which is the confirmation.
//! * The number of the other process is reserved while any segment of the two is open ([`Universe`](crate::universe::Universe)).
//!   So a connection that arrives before the slower process disconnects gets the same number.
//! * If the other end of a segment closes without a disconnect message, the other process has died.
//!   The death is reported after all data in the segment have been delivered.

mod link;
mod meeting;
mod peer;
#[cfg(test)]
mod tests;

use super::Shape;
use crate::btl::peers::{Peers, Place};
use crate::btl::{
    Am, Btl, Capabilities, Connections, Endpoint, Header, Info, Modex, Names, OpenError, Payload,
    Pipeline, ProcId, Reach, SendError, Sink, Transport, Wakeup,
};
use crate::universe::Universe;
use link::Link;
use meeting::{Entry, Meeting};
use mpi_base::inbox::Inbox;
use mpi_base::mem::Held;
use mpi_base::param::Params;
use peer::Peer;
use rustix::event::{Timespec, epoll};
use std::cell::{Cell, RefCell};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// Number of polls of the segments for each poll of the sockets, which is a system call.
/// The number is small enough for programs that call MPI rarely.
const ASK: u32 = 32;

/// The key under which the card contains the address of a process's socket.
const KEY: &str = "sm";

/// Opens the transport to processes of other jobs on this node, and publishes the address of this process's socket on its card.
pub(in crate::btl) fn open_to_other_jobs(
    params: &Params,
    universe: &Arc<Universe>,
) -> Result<Transport, OpenError> {
    Ok(Box::new(OtherJobs::open(params, universe)?))
}

struct OtherJobs {
    me: ProcId,
    universe: Arc<Universe>,
    params: Params,
    info: Info,
    epoll: OwnedFd,
    meeting: RefCell<Meeting>,
    machine: u64,
    peers: Peers<Peer>,
    /// Number of polls of the segments since the latest poll of the sockets.
    looks: Cell<u32>,
    /// True while `progress` delivers messages to the sink.
    busy: Cell<bool>,
    /// True after this process has left MPI, until it starts a new session.
    away: Cell<bool>,
    /// True if this process has left MPI at least once.
    has_left: Cell<bool>,
}

impl OtherJobs {
    fn open(params: &Params, universe: &Arc<Universe>) -> Result<OtherJobs, OpenError> {
        let system = |doing: &'static str, reason: String| OpenError::System { doing, reason };
        let sizes = link::sizes();
        let shape = Shape::new(sizes.ring_cells, sizes.ring_bytes);
        let shape = shape.ok_or_else(|| system("making rings", "their sizes are odd".into()))?;
        let limits = super::limits(params, shape, sizes.frag_len as usize);
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)
            .map_err(|error| system("making a poller", error.to_string()))?;
        let meeting = Meeting::open(epoll.as_fd())
            .map_err(|error| system("listening on an abstract socket", error.to_string()))?;
        let entry = meeting.entry();
        universe
            .put(KEY, &entry.encode())
            .map_err(|reason| OpenError::NoModex { reason })?;
        Ok(OtherJobs {
            me: universe.me(),
            universe: universe.clone(),
            params: params.clone(),
            info: super::info(limits.map_err(OpenError::Param)?),
            epoll,
            meeting: RefCell::new(meeting),
            machine: entry.machine,
            peers: Peers::new(0),
            looks: Cell::new(0),
            busy: Cell::new(false),
            away: Cell::new(false),
            has_left: Cell::new(false),
        })
    }

    /// Returns the socket address of a process; an error if the process is not on this node.
    fn entry(&self, peer: ProcId) -> Result<Entry, String> {
        let entry = Entry::decode(&self.universe.get(peer, KEY)?);
        let entry = entry.ok_or("its card makes no sense")?;
        match entry.machine == self.machine {
            true => Ok(entry),
            false => Err(crate::rte::unknown_machine().unwrap_or("it runs on another node".into())),
        }
    }

    /// Returns true if this process has an outlet to the peer. If it has none, a segment that the peer has created may become the outlet.
    fn has_outlet(&self, peer: &Peer) -> bool {
        peer.has_outlet() || !self.has_left.get() && peer.adopt()
    }

    /// Creates a segment through which this process sends to `proc`, if there is none.
    fn link(&self, proc: ProcId) -> Result<(), String> {
        if self.universe.is_unused(proc) {
            return Err("no communicator connects it with this process any more".into());
        }
        match self.peers.known(proc) {
            Some(peer) if peer.is_lost() => return Err("it has been lost".into()),
            Some(peer) if self.has_outlet(peer) => return Ok(()),
            _ => {}
        }
        let entry = self.entry(proc)?;
        let name = Names::name(&*self.universe, self.me).ok_or("this process has no name")?;
        let link = Link::make((self.me, name), proc, entry, &self.params)?;
        meeting::watch(self.epoll.as_fd(), link.socket()).map_err(|error| error.to_string())?;
        let peer = self.peers.meet(proc);
        peer.ok_or("there are too many processes")?.set_made(link);
        self.universe.connected(proc);
        Ok(())
    }

    /// Accepts the processes that have connected, and attaches to their segments. Returns the number of messages delivered.
    fn admit(&self, sink: &dyn Sink) -> usize {
        let mut delivered = 0;
        let callers = self.meeting.borrow_mut().callers(self.epoll.as_fd());
        for caller in callers {
            // If the caller may not connect or its segment is invalid,
            // the socket is closed, and the caller reports a loss.
            let known = self.universe.may_call(caller.name);
            let Some(proc) = known.then(|| self.universe.admit(caller.name)).flatten() else {
                continue;
            };
            if let Ok(link) = Link::take(self.me, proc, caller, &self.params)
                && let Some(peer) = self.peers.meet(proc)
            {
                self.universe.connected(proc);
                delivered += peer.set_brought(link, sink);
            } else {
                self.universe.forget_if_idle(proc);
            }
        }
        delivered
    }

    /// If a socket has an event, accepts callers and closes ended segments. Returns the number of messages delivered.
    #[cold]
    fn look_at_sockets(&self, sink: &dyn Sink) -> usize {
        self.looks.set(0);
        if !self.has_calls() {
            return 0;
        }
        let mut delivered = 0;
        for peer in self.peers.iter() {
            let proc = peer.proc();
            let ended = peer.look(|| !self.universe.is_unused(proc), sink);
            delivered += ended.delivered;
            if ended.is_death && !self.universe.is_unused(proc) {
                let ends = Names::ends(&*self.universe, self.me, proc);
                let why = format!(
                    "the memory that {ends} share has lost its other end: its process has died, or has refused the memory"
                );
                peer.lose();
                sink.lost(proc, &why);
            } else if ended.has_parted {
                sink.parted(proc);
            }
            self.give_up(proc, ended.closed);
        }
        delivered + self.admit(sink)
    }

    /// Records that `count` segments shared with the process `proc` have been closed.
    fn give_up(&self, proc: ProcId, count: usize) {
        let linked = self.peers.known(proc).is_some_and(|peer| peer.links() > 0);
        if !linked && self.universe.is_unused(proc) {
            self.peers.forget(proc);
        }
        // The last of these calls may remove the process, so the check must precede them.
        (0..count).for_each(|_| self.universe.disconnected(proc));
    }

    fn has_calls(&self) -> bool {
        let mut events = [const { MaybeUninit::<epoll::Event>::uninit() }; 1];
        epoll::wait(&self.epoll, &mut events, Some(&Timespec::default()))
            .is_ok_and(|(events, _)| !events.is_empty())
    }

    /// Listens again under the same name, because this process has started a new session.
    #[cold]
    fn come_back(&self) {
        let epoll = self.epoll.as_fd();
        self.away
            .set(self.meeting.borrow_mut().listen(epoll).is_err());
    }
}

impl Btl for OtherJobs {
    fn info(&self) -> &Info {
        &self.info
    }

    fn reach(&self, peer: ProcId) -> Reach {
        match self.link(peer) {
            Ok(()) => Reach::Yes(Endpoint(peer)),
            Err(why) => Reach::No(why),
        }
    }

    fn send(
        &self,
        to: Endpoint,
        am: Am,
        header: Header,
        payload: Payload<'_>,
    ) -> Result<(), SendError> {
        let known = self.peers.known(to.0).filter(|peer| self.has_outlet(peer));
        let peer = match known {
            Some(peer) => peer,
            None => {
                self.link(to.0).map_err(|_| SendError::PeerGone)?;
                self.peers.known(to.0).ok_or(SendError::PeerGone)?
            }
        };
        let sent = peer.with_outlet(|link| {
            let sent = link.sm.send(link.to, am, header, payload);
            // The peer has closed the segment, by a disconnect or by its death. The next poll of the socket distinguishes the two.
            match sent {
                Err(SendError::PeerGone) if self.has_calls() => {
                    self.looks.set(ASK);
                    Err(SendError::WouldBlock)
                }
                sent => sent,
            }
        });
        sent.unwrap_or(Err(SendError::PeerGone))
    }

    fn progress(&self, sink: &dyn Sink) -> usize {
        // The sink of a running `progress` has called this function; the running call continues afterwards.
        if self.busy.replace(true) {
            return 0;
        }
        if self.away.get() {
            self.come_back();
        }
        let mut delivered = 0;
        for peer in self.peers.iter() {
            delivered += peer.progress(sink);
        }
        let looks = self.looks.get() + 1;
        self.looks.set(looks);
        if looks > ASK {
            delivered += self.look_at_sockets(sink);
        }
        self.busy.set(false);
        delivered
    }

    fn pending(&self) -> bool {
        if self.busy.get() || self.peers.iter().any(Peer::is_pending) {
            return true;
        }
        let calls = self.has_calls();
        if calls {
            self.looks.set(ASK);
        }
        calls
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities {
            pipeline: Some(self),
            connections: Some(self),
            wakeup: Some(self),
            ..Capabilities::default()
        }
    }
}

impl Pipeline for OtherJobs {
    fn fragment(&self, bytes: u64, packed: bool, alone: bool) -> usize {
        super::fragment(self.info.limits, bytes, packed, alone)
    }

    fn eager_fragment(&self, to: Endpoint, bytes: u64, packed: bool) -> Option<usize> {
        let peer = self.peers.known(to.0)?;
        peer.with_outlet(|link| link.sm.eager_fragment(link.to, bytes, packed))?
    }
}

impl Connections for OtherJobs {
    fn cut(&self, to: Endpoint) {
        if let Some(peer) = self.peers.known(to.0) {
            peer.cut();
        }
    }

    fn disconnect(&self, peer: ProcId) {
        if let Some(known) = self.peers.known(peer) {
            known.part();
            self.give_up(peer, 0);
        }
    }

    /// Waits for nothing: accepted messages are already in memory that the peers have mapped.
    fn shutdown(&self) {
        for peer in self.peers.iter() {
            let proc = peer.proc();
            let count = peer.leave();
            self.peers.forget(proc);
            (0..count).for_each(|_| self.universe.disconnected(proc));
        }
        self.meeting.borrow_mut().close();
        self.away.set(true);
        self.has_left.set(true);
    }
}

impl Wakeup for OtherJobs {
    fn descriptors<'a>(&'a self, all: &mut Vec<BorrowedFd<'a>>) {
        all.push(self.epoll.as_fd());
    }

    fn doorbells(&self, all: &mut Vec<Held<Inbox>>) {
        self.peers.iter().for_each(|peer| peer.doorbells(all));
    }
}
