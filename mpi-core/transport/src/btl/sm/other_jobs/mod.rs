//! Shared memory with processes of other jobs on the same node.
//!
//! Two processes that did not start together have no memory in common, so the one that first has something to send makes memory of two,
//! brings it to the other one's socket ([`meeting`]), and writes at once; the other one finds it when it polls its sockets.
//! Where both begin at the same time there are two such memories.
//!
//! A process polls its memories every time, and its sockets one time in [`ASK`] and before it sleeps.
//! While it sleeps, the bells in all these memories ring at its one socket ([`mpi_base::descriptor_doorbell`]).
//!
//! # Disconnecting and connecting again
//!
//! A goodbye ends one direction of one memory: its sender writes no more into *that* memory. It says nothing about other memories of the same two processes.
//! So one process may have disconnected and called again while the slower one is still in the first disconnect:
//! the new call brings new memory, and the late goodbye goes to the old one.
//!
//! * A process sends through one memory, its outlet: one that it has made, or one that was brought, if it has said goodbye in none that is still open:
//!   what it wrote there is read first.
//! * When the last communicator that names the other process is freed, it says goodbye in its outlet alone.
//!   Memory that was brought and never written by this process is left open: it may belong to the next encounter.
//! * A goodbye that comes is answered by one, and the memory given up, unless the memory is this process's outlet and the other process is still named;
//!   then this process writes on, and the other one reads on, until this process parts.
//! * Memory is given up when both have said goodbye, so neither writes into memory that the other does not read.
//! * The number of the other process is kept as long as any memory of the two is open ([`Universe`](crate::universe::Universe)),
//!   so a call that comes before the slower side has parted has the number that the next communicator gives it.
//! * A memory whose other end closes without a goodbye is a death, which is reported after everything that was written has been delivered.

mod link;
mod meeting;
mod peer;
#[cfg(test)]
mod tests;

use super::Shape;
use crate::btl::peers::{Peers, Place};
use crate::btl::{
    Am, Btl, Endpoint, Header, Limits, Modex, Names, OpenError, Payload, ProcId, Reach, SendError,
    Sink, Transport,
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

/// The sockets are looked at once in so many looks at the memories, since a look at them is a system call:
/// often enough for a program that calls MPI once in a while.
const ASK: u32 = 32;

/// Under which a process's card says where its socket is.
const KEY: &str = "sm";

/// The transport to processes of other jobs on this node; it puts the name of this process's socket on its card.
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
    limits: Limits,
    epoll: OwnedFd,
    meeting: RefCell<Meeting>,
    machine: u64,
    peers: Peers<Peer>,
    /// Looks at the memories since the sockets were looked at.
    looks: Cell<u32>,
    /// Set while the sink runs.
    busy: Cell<bool>,
    /// Whether this process has left MPI and has not come back.
    away: Cell<bool>,
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
            .map_err(|reason| OpenError::NoBoard { reason })?;
        Ok(OtherJobs {
            me: universe.me(),
            universe: universe.clone(),
            params: params.clone(),
            limits: limits.map_err(OpenError::Param)?,
            epoll,
            meeting: RefCell::new(meeting),
            machine: entry.machine,
            peers: Peers::new(0),
            looks: Cell::new(0),
            busy: Cell::new(false),
            away: Cell::new(false),
        })
    }

    /// How a process is called at, if it is on this node.
    fn entry(&self, peer: ProcId) -> Result<Entry, String> {
        let entry = Entry::decode(&self.universe.get(peer, KEY)?);
        let entry = entry.ok_or("its card makes no sense")?;
        match entry.machine == self.machine {
            true => Ok(entry),
            false => Err(crate::rte::unknown_machine().unwrap_or("it runs on another node".into())),
        }
    }

    /// Sees to it that there is memory through which a process is sent to.
    fn link(&self, proc: ProcId) -> Result<(), String> {
        if self.universe.is_unused(proc) {
            return Err("no communicator connects it with this process any more".into());
        }
        match self.peers.known(proc) {
            Some(peer) if peer.is_lost() => return Err("it has been lost".into()),
            Some(peer) if peer.has_outlet() => return Ok(()),
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

    /// Lets in the processes that have called.
    fn admit(&self, sink: &dyn Sink) -> usize {
        let mut delivered = 0;
        let callers = self.meeting.borrow_mut().callers(self.epoll.as_fd());
        for caller in callers {
            // A name that cannot call, or a memory that is none: the socket closes, and the caller learns that it has lost us.
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

    /// Polls the sockets if something has arrived, lets callers in and ends what has ended.
    #[cold]
    fn look_at_sockets(&self, sink: &dyn Sink) -> usize {
        self.looks.set(0);
        if !self.has_calls() {
            return 0;
        }
        let mut delivered = 0;
        for peer in self.peers.iter() {
            let proc = peer.proc();
            let ended = peer.look(!self.universe.is_unused(proc), sink);
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

    /// Memories that are shared with a process have been given up.
    fn give_up(&self, proc: ProcId, count: usize) {
        let linked = self.peers.known(proc).is_some_and(|peer| peer.links() > 0);
        if !linked && self.universe.is_unused(proc) {
            self.peers.forget(proc);
        }
        // The process may be forgotten by the last one, so it is asked before.
        (0..count).for_each(|_| self.universe.disconnected(proc));
    }

    fn has_calls(&self) -> bool {
        let mut events = [const { MaybeUninit::<epoll::Event>::uninit() }; 1];
        epoll::wait(&self.epoll, &mut events, Some(&Timespec::default()))
            .is_ok_and(|(events, _)| !events.is_empty())
    }

    /// Listens again, under the same name, after a process that had left MPI has come back.
    #[cold]
    fn come_back(&self) {
        let epoll = self.epoll.as_fd();
        self.away
            .set(self.meeting.borrow_mut().listen(epoll).is_err());
    }
}

impl Btl for OtherJobs {
    fn name(&self) -> &'static str {
        "sm"
    }

    fn exclusivity(&self) -> u32 {
        super::EXCLUSIVITY
    }

    fn limits(&self) -> Limits {
        self.limits
    }

    fn fragment(&self, bytes: u64, packed: bool, alone: bool) -> usize {
        super::fragment(self.limits, bytes, packed, alone)
    }

    fn follow(&self, to: Endpoint, bytes: u64, packed: bool) -> Option<usize> {
        let peer = self.peers.known(to.0)?;
        peer.with_outlet(|link| link.sm.follow(link.to, bytes, packed))?
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
        let known = self.peers.known(to.0).filter(|peer| peer.has_outlet());
        let peer = match known {
            Some(peer) => peer,
            None => {
                self.link(to.0).map_err(|_| SendError::PeerGone)?;
                self.peers.known(to.0).ok_or(SendError::PeerGone)?
            }
        };
        let sent = peer.with_outlet(|link| {
            let sent = link.sm.send(link.to, am, header, payload);
            // It has given the memory up: in order, or there will be a look at its socket that finds it lost.
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
        // The sink called us; the round that runs will go on after it.
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

    fn descriptors<'a>(&'a self, all: &mut Vec<BorrowedFd<'a>>) {
        all.push(self.epoll.as_fd());
    }

    fn bells(&self, all: &mut Vec<Held<Inbox>>) {
        self.peers.iter().for_each(|peer| peer.bells(all));
    }

    fn cut(&self, to: Endpoint) {
        if let Some(peer) = self.peers.known(to.0) {
            peer.cut();
        }
    }

    fn part_from(&self, peer: ProcId) {
        if let Some(known) = self.peers.known(peer) {
            self.give_up(peer, known.part());
        }
    }

    /// What was taken lies in memory that the peers have, so nothing is waited for.
    fn leave(&self) {
        for peer in self.peers.iter() {
            let proc = peer.proc();
            let count = peer.leave();
            self.peers.forget(proc);
            (0..count).for_each(|_| self.universe.disconnected(proc));
        }
        self.meeting.borrow_mut().close();
        self.away.set(true);
    }
}
