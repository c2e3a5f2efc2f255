//! [`Fabric`], a transport over any [`Port`]: the code that the transports over network libraries share.
//!
//! **Cards.** Each process publishes the address of its port and a random key through the launcher ([`card`]).
//! A process connects to a peer when it first needs the peer. An address from an incomplete or damaged card is not used.
//!
//! **Sending** copies a message into a buffer of a bounded pool ([`pool`]). If all buffers are in use, `send` returns `WouldBlock`.
//! Long messages can be delivered in place, without a buffer ([`transfers`]).
//! **Receiving** delivers a message directly from the library's memory
//! if the message is the next in the sender's order ([`order`]).
//! Before a process sleeps, it polls the library without a sink; messages that arrive then are stored for the next `progress`.
//!
//! **End of connections.** A process that shuts down sends a disconnect message after its last message.
//! Then it waits for the disconnect messages of its peers, up to a time limit.
//! A peer is lost if its connection fails without a disconnect message or is not established within the time limit.
//!
//! A component is a [`Port`] with its parameters; [`seen`] detects the hardware, and [`library`] loads the library.

pub mod card;
pub mod frame;
pub mod layout;
#[macro_use]
pub mod library;
mod arrivals;
mod connections;
pub mod named_address;
pub mod open;
mod operations;
pub mod order;
mod peer;
pub mod pool;
pub mod port;
pub mod seen;
pub mod settings;
pub mod transfers;
pub mod variables;

use super::{
    Am, Btl, Capabilities, Endpoint, Header, InPlace, Info, Modex, OVERTAKES, Payload, ProcId,
    Reach, RemoteMemory, SendError, Sink, Traffic, Wakeup,
};
use arrivals::{Held, Turn};
use frame::{Frame, Kind};
use operations::Operations;
use peer::{Peer, State};
use pool::{Pool, Slot};
use port::{Port, Posted};
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};
use transfers::Transfers;

/// Maximum number of messages to one peer whose transmission is not complete, so that a peer that does not respond does not occupy all buffers.
const UNSENT: u32 = 256;
/// Maximum number of polls before a sleep. If the library still has work after these polls, the process does not sleep.
const ROUNDS: u32 = 16;

/// A transport over a port.
pub struct Fabric<P: Port> {
    me: ProcId,
    /// The library's name in texts for the user, such as error messages.
    title: String,
    info: Info,
    /// The number that identifies the library in cards. `card_key` is the modex key of the transport's cards.
    kind: u8,
    card_key: &'static str,
    /// The key that messages to this process must contain.
    key: u64,
    connect_within: Duration,
    /// The component's name in MCA parameters (`btl_NAME_...`).
    parameters: &'static str,
    port: P,
    modex: Arc<dyn Modex>,
    peers: Vec<OnceCell<Box<Peer>>>,
    pool: Pool,
    /// Messages, disconnections and losses of peers that a poll without a [`Sink`] has found;
    /// the next poll with a sink delivers them.
    held: RefCell<VecDeque<Held>>,
    /// Connection changes that must not run inside a callback of the network library.
    chores: RefCell<Vec<Chore>>,
    /// The peers with messages that the network library has refused to send.
    refusing: RefCell<Vec<ProcId>>,
    /// The peers whose connection is being established.
    connecting: RefCell<Vec<ProcId>>,
    /// True while a poll is running.
    busy: Cell<bool>,
    /// True from the moment at which this process begins to shut down the transport until its connections have ended.
    is_leaving: Cell<bool>,
    /// `wants_space` is true if a send was refused since this process last slept, `has_space` if a buffer was freed since then.
    wants_space: Cell<bool>,
    has_space: Cell<bool>,
    operations: Operations,
    /// Deliveries in place.
    transfers: Transfers,
    /// Messages of at least this length in bytes are read from registered memory of the sender.
    read_min: usize,
    /// Number of messages that this transport has accepted. `received` is the number of messages delivered to a sink.
    sent: Cell<u64>,
    received: Cell<u64>,
}

/// A deferred change of a connection; the libraries do not permit such changes in their callbacks.
enum Chore {
    /// A message has arrived from a peer without a connection, so this process must connect to the peer.
    Connect(ProcId),
    /// A peer has sent a disconnect message, so this process must reply.
    Answer(ProcId),
    Lose(ProcId, String, port::Close),
}

impl<P: Port> Fabric<P> {
    fn peer(&self, proc: ProcId) -> Option<&Peer> {
        let cell = self.peers.get(proc as usize)?;
        Some(cell.get_or_init(|| Peer::of(proc)))
    }

    fn known(&self) -> impl Iterator<Item = &Peer> {
        self.peers.iter().filter_map(|cell| Some(&**cell.get()?))
    }

    /// Passes a message in a buffer to the library.
    #[inline]
    fn post(
        &self,
        peer: &Peer,
        mut slot: Slot,
        am: Am,
        header: Header,
        kind: Kind,
    ) -> Result<(), SendError> {
        let is_ordered = am & OVERTAKES == 0;
        let number = if is_ordered { peer.next.get() } else { 0 };
        let frame = Frame {
            header,
            from: self.me,
            number,
            am,
            kind,
            key: peer.key.get(),
        };
        slot.set_head(&frame.encode());
        slot.peer = peer.proc;
        if peer.refused.borrow().is_empty() {
            match self.port.post(peer.proc, slot) {
                Posted::Done(slot) => {
                    self.pool.put(slot);
                    peer.is_made.set(true);
                }
                Posted::Pending => self.waits(peer),
                Posted::Again(slot) => self.keep(peer, slot),
                Posted::Gone(slot, why) => {
                    self.gone(peer, slot, why);
                    return Err(SendError::PeerGone);
                }
            }
        } else {
            self.keep(peer, slot);
        }
        if is_ordered {
            peer.next.set(number.wrapping_add(1));
        }
        peer.has_spoken.set(true);
        Ok(())
    }

    /// Queues a message that the network library has refused to send, for example because the connection is not established yet.
    #[cold]
    fn keep(&self, peer: &Peer, slot: Slot) {
        let mut refused = peer.refused.borrow_mut();
        if refused.is_empty() {
            self.refusing.borrow_mut().push(peer.proc);
        }
        refused.push_back(slot);
        self.waits(peer);
    }

    /// Handles the library's result that a peer is unreachable: frees the buffer and defers the loss.
    #[cold]
    fn gone(&self, peer: &Peer, slot: Slot, why: String) {
        self.pool.put(slot);
        let lose = Chore::Lose(peer.proc, why, port::Close::AtOnce);
        self.chores.borrow_mut().push(lose);
    }

    /// Passes the refused messages to the library again.
    #[cold]
    fn offer_again(&self) {
        for proc in self.refusing.take() {
            let Some(peer) = self.peer(proc) else {
                continue;
            };
            loop {
                let Some(slot) = peer.refused.borrow_mut().pop_front() else {
                    break;
                };
                match self.port.post(proc, slot) {
                    Posted::Done(slot) => {
                        self.pool.put(slot);
                        self.finished(peer);
                        peer.is_made.set(true);
                    }
                    Posted::Pending => {}
                    Posted::Again(slot) => {
                        peer.refused.borrow_mut().push_front(slot);
                        self.refusing.borrow_mut().push(proc);
                        break;
                    }
                    Posted::Gone(slot, why) => {
                        self.finished(peer);
                        self.gone(peer, slot, why);
                        break;
                    }
                }
            }
        }
    }

    /// Counts a message to a peer as transmitted; its buffer is free.
    fn finished(&self, peer: &Peer) {
        peer.unsent.set(peer.unsent.get().saturating_sub(1));
        self.has_space.set(true);
    }

    /// Counts a message to a peer whose transmission is not complete.
    fn waits(&self, peer: &Peer) {
        peer.unsent.set(peer.unsent.get() + 1);
        self.starts_waiting(peer);
    }

    /// Starts the time limit for the connection to a peer, when the first message waits for the connection.
    fn starts_waiting(&self, peer: &Peer) {
        if !peer.is_made.get() && peer.waits_since.get().is_none() {
            peer.waits_since.set(Some(Instant::now()));
            self.connecting.borrow_mut().push(peer.proc);
        }
    }

    /// Polls the library once; the caller has set `busy`. Without a sink, events are stored.
    fn turn(&self, sink: Option<&dyn Sink>) -> usize {
        let turn = Turn::new(self, sink);
        turn.deliver_held();
        self.port.progress(&turn);
        if !self.refusing.borrow().is_empty() {
            self.offer_again();
        }
        if !self.chores.borrow().is_empty() {
            self.do_chores(sink);
        }
        if !self.connecting.borrow().is_empty() {
            self.check_deadlines(sink);
        }
        turn.delivered()
    }

    /// Returns true if a send was refused and a buffer has been freed since.
    fn has_space_again(&self) -> bool {
        let has_space = self.wants_space.get() && self.has_space.replace(false);
        if has_space {
            self.wants_space.set(false);
        }
        has_space
    }
}

impl<P: Port> Btl for Fabric<P> {
    fn info(&self) -> &Info {
        &self.info
    }

    fn reach(&self, proc: ProcId) -> Reach {
        if proc == self.me {
            return Reach::No("it is this process itself".into());
        }
        let Some(peer) = self.peer(proc) else {
            return Reach::No("it is no process of this job".into());
        };
        match peer.state.get() {
            State::Up | State::Lost => Reach::Yes(Endpoint(proc)),
            // The connection is started here, before the first message. If the library finds no path to the peer,
            // another transport can be used.
            State::Fresh => match self.connect(peer) {
                Ok(()) => Reach::Yes(Endpoint(proc)),
                Err(why) => Reach::No(why),
            },
        }
    }

    #[inline]
    fn send(
        &self,
        to: Endpoint,
        am: Am,
        header: Header,
        mut payload: Payload<'_>,
    ) -> Result<(), SendError> {
        let (len, max) = (payload.len(), self.info.limits.max_send);
        if len > max {
            return Err(SendError::TooLong { len, max });
        }
        let peer = self.peer(to.0).ok_or(SendError::PeerGone)?;
        match peer.state.get() {
            State::Up => {}
            State::Fresh => self.connect(peer).map_err(|_| SendError::PeerGone)?,
            State::Lost => return Err(SendError::PeerGone),
        }
        let slot = match peer.unsent.get() < UNSENT {
            true => self.pool.take(len),
            false => None,
        };
        let Some(mut slot) = slot else {
            self.wants_space.set(true);
            return Err(SendError::WouldBlock);
        };
        payload.put(slot.payload_mut());
        self.post(peer, slot, am, header, Kind::Message)?;
        self.sent.set(self.sent.get() + 1);
        Ok(())
    }

    #[inline]
    fn progress(&self, sink: &dyn Sink) -> usize {
        // True if the sink of a running `progress` calls this function; the running call delivers all messages.
        if self.busy.replace(true) {
            return 0;
        }
        let delivered = self.turn(Some(sink));
        self.busy.set(false);
        delivered
    }

    fn pending(&self) -> bool {
        if self.busy.replace(true) {
            return true;
        }
        let has_something = || {
            let held = !self.held.borrow().is_empty()
                || !self.chores.borrow().is_empty()
                || self.operations.have_ended()
                || self.transfers.have_ended();
            held || self.has_space_again()
        };
        let mut pending = has_something();
        let mut rounds = 0;
        while !pending {
            self.turn(None);
            pending = has_something() || rounds == ROUNDS;
            rounds += 1;
            if !pending && self.port.may_sleep() {
                break;
            }
        }
        self.busy.set(false);
        pending
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities {
            connections: Some(self),
            wakeup: Some(self),
            remote_memory: self.port.memory().map(|_| self as &dyn RemoteMemory),
            in_place: self.port.in_place().map(|_| self as &dyn InPlace),
            traffic: Traffic::Counted {
                sent: self.sent.get(),
                received: self.received.get(),
            },
            ..Capabilities::default()
        }
    }
}

impl<P: Port> Wakeup for Fabric<P> {
    fn descriptors<'a>(&'a self, all: &mut Vec<BorrowedFd<'a>>) {
        all.extend(self.port.descriptor());
    }

    fn longest_sleep(&self) -> Option<Duration> {
        self.port.longest_sleep()
    }
}

impl<P: Port> Drop for Fabric<P> {
    fn drop(&mut self) {
        self.end_now();
    }
}
