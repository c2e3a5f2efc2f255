//! ob1: eager and rendezvous protocols over any BTL, with matching at the receiver.
//!
//! Protocol, by the length and mode of the message:
//! * a message up to the BTL's eager limit is sent with its match header ([`wire::EAGER`]), and the send completes when the BTL has accepted the message;
//! * a longer or synchronous message is announced by [`wire::RNDV`], and its data wait for the receiver;
//!   when a receive has matched, the receiver reads the data in a single copy and replies [`wire::FIN`],
//!   or, if a single copy is impossible or slower ([`protocol_choice`]), replies [`wire::CTS`]; the sender then sends [`wire::FRAG`]s, so both sides copy concurrently;
//! * if the transport delivers data in place ([`recv`]), the receiver posts its buffer before it replies CTS, and the transport writes the data into the buffer;
//! * to peers for which the eager pipeline is faster, the data of a message of medium length follow the announcement without a CTS ([`recv::eager_pipeline`]);
//! * if several messages to one peer are sent in fragments, their fragments alternate ([`send::streams`]);
//! * during the single copy of a large message the receiver asks the sender to copy a part ([`wire::ASSIST`]); the sender reports completion of the part ([`wire::ASSIST_DONE`]);
//!   if the sender is computing, the receiver copies the whole message itself;
//! * a receiver with too much memory in unexpected short messages makes the senders use rendezvous ([`flow_control`]).
//!
//! Modules, each with private state; [`Ob1`] owns them and passes each arriving message to the responsible module:
//! * [`core::Core`]: the shared state: the peers ([`links`]), the requests, the losses, the observer;
//! * [`recv::Receiver`]: matching, unexpected messages, and the receiver's side of the protocols;
//! * [`send::Sender`]: the choice of the protocol for each message, queued messages, and the sender's side of the protocols;
//! * [`peer::Peer`]: the state of all modules for one peer;
//! * [`types`]: the type signatures of messages, if they are compared ([`described::Types`]);
//! * [`termination`]: early termination of operations, by [`peer_failure`] and [`interrupt`].
//!
//! Order: a BTL delivers messages in the order in which it accepted them, and messages that it did not accept wait in the peer's queue.
//! So matching sees messages in the order of sending.
//!
//! No function of ob1 calls user code, and no `RefCell` borrow is active while a BTL or the request table is called.

mod buffer_pool;
pub mod config;
mod core;
pub mod counts;
pub mod described;
mod dispatch;
mod exposure;
mod fast_path;
mod flow_control;
mod incoming;
mod interrupt;
mod links;
mod losses;
mod matcher;
pub mod matching;
pub mod peer;
mod peer_failure;
pub mod probe;
mod protocol_choice;
mod recv;
pub mod recv_body;
mod send;
pub mod send_body;
mod shared_copy;
mod stream;
mod termination;
#[cfg(feature = "testing")]
mod testing;
mod transfers;
mod types;
pub mod wire;

use self::core::Core;
use super::envelope::{Context, Envelope, Mode};
use super::error::PmlError;
use crate::Error;
use crate::bml::Bml;
use crate::btl::{Limits, ProcId};
use crate::datatype::{RecvBuf, RecvBytes, RecvTarget, SendBuf};
use crate::group::Group;
use crate::observer::Observer;
use crate::request::{Body, Outcome, Req, Status, Table};
use config::Config;
use counts::Counts;
use matching::{Key, Matching};
use peer::Peer;
use probe::Message;
use recv::Receiver;
use send::Sender;
use send::streams::Streams;
use std::rc::Rc;

pub use send::Sent;
pub use termination::Termination;

/// The point-to-point messaging object of one process.
pub struct Ob1 {
    core: Core,
    receiver: Receiver,
    sender: Sender,
}

impl Ob1 {
    /// Creates the messaging object of a process in a job of `job_size` processes.
    pub fn new(bml: Bml, job_size: u32, config: Config) -> Ob1 {
        Ob1 {
            core: Core::new(bml, job_size, config),
            receiver: Receiver::default(),
            sender: Sender::default(),
        }
    }

    /// Returns all requests of this process, including those of collective operations.
    #[inline]
    pub fn requests(&self) -> &Table {
        self.core.requests()
    }

    /// Sets the observer; only the first call has an effect.
    pub fn set_observer(&self, observer: Rc<dyn Observer>) {
        self.receiver.slot().close();
        self.core.set_observer(observer);
    }

    /// Returns the transports.
    #[inline]
    pub fn bml(&self) -> &Bml {
        self.core.links().bml()
    }

    /// Returns the counters of rare events.
    pub fn counts(&self) -> &Counts {
        self.core.counts()
    }

    /// Returns the number of arriving messages that were dropped as malformed or late.
    pub fn protocol_errors(&self) -> u64 {
        self.core.protocol_errors()
    }

    /// Returns the matching state of a context. The first call for a context creates the state.
    pub fn matching(&self, context: Context) -> Rc<Matching> {
        self.receiver.matcher().matching(context)
    }

    /// Returns the matching state of a communicator's context (see [`Ob1::matching`]) and sets `peers`,
    /// the group to which the ranks in the context's messages refer.
    pub fn matching_among(&self, context: Context, peers: &Group) -> Rc<Matching> {
        self.receiver.matcher().matching_among(context, peers)
    }

    /// Removes a freed context and discards its unexpected messages.
    pub fn forget(&self, context: Context) {
        self.receiver.forget(&self.core, context);
    }

    /// Returns the message size limits of the transport to a peer.
    pub fn limits(&self, proc: ProcId) -> Result<Limits, PmlError> {
        (self.core.links().peer(proc)).map(|peer| *peer.limits())
    }

    /// Removes a process of another job that is in no communicator any longer.
    pub fn disconnect(&self, proc: ProcId) {
        self.core.losses().forget(proc);
        self.core.links().disconnect(proc);
    }

    /// Polls the transports and sends queued messages. Returns true if any message was delivered or any data were moved.
    #[inline]
    pub fn progress(&self) -> bool {
        let delivered = self.bml().progress(self);
        let mut moved = false;
        if self.core.links().is_congested() {
            moved |= self.sender.drain_queues(&self.core);
        }
        if self.sender.streams().are_under_way() {
            moved |= self.sender.streams().push_all(&self.core);
        }
        if delivered == 0 && self.receiver.has_copies() {
            moved |= self.receiver.read_rest(&self.core);
        }
        if self.receiver.is_reading() {
            moved |= self.receiver.end_reads(&self.core);
        }
        if self.core.transfers().are_open() {
            moved |= end_transfers(&self.core, self.sender.streams());
        }
        delivered > 0 || moved
    }

    /// Returns true if this process has work that no event will signal, so the process must not sleep now.
    ///
    /// Messages queued for lack of space do not count: their transport signals when it has space ([`crate::btl::Btl::pending`]).
    pub fn pending(&self) -> bool {
        self.bml().pending() || self.receiver.has_copies()
    }

    /// Starts a send.
    #[inline]
    pub fn isend(&self, envelope: Envelope, buf: SendBuf, mode: Mode) -> Result<Sent, Error> {
        let peer = self.core.links().peer(envelope.proc)?;
        let mode = match self.core.observer() {
            None => mode,
            Some(_) => {
                self.observe_send(&envelope, buf.bytes() as u64);
                types::announce(&self.core, &peer, &envelope, &buf, mode)
            }
        };
        match (self.sender).try_eager(&self.core, &peer, &envelope, &buf, mode)? {
            true => Ok(Sent::Done),
            false => self.isend_slow(&peer, envelope, buf, mode),
        }
    }

    /// Reports a send to the observer, if one is set.
    #[inline]
    pub fn observe_send(&self, envelope: &Envelope, bytes: u64) {
        if let Some(observer) = self.core.observer() {
            self.core.counts().sends_observed();
            observer.sends(envelope, bytes);
        }
    }

    #[cold]
    fn isend_slow(
        &self,
        peer: &Rc<Peer>,
        envelope: Envelope,
        buf: SendBuf,
        mode: Mode,
    ) -> Result<Sent, Error> {
        if peer.credit().is_spent() {
            self.poll_after_eager(peer);
        }
        self.sender.begin(&self.core, peer, envelope, buf, mode)
    }

    /// Polls for messages of the peer, such as THROTTLE, after much eager data has been sent.
    #[cold]
    fn poll_after_eager(&self, peer: &Peer) {
        peer.credit().renew();
        self.bml().attend();
        self.bml().progress(self);
    }

    /// Starts to cancel a send. Returns true if the request is a send.
    pub fn cancel_send(&self, req: &Req) -> bool {
        send::cancel::cancel(&self.core, req)
    }

    /// Completes the sends from private copies that have been delivered. Returns the number of incomplete ones.
    pub fn end_copies(&self) -> usize {
        self.sender.copies().end_all(&self.core)
    }

    /// Abandons the incomplete sends from private copies; no receive will be posted for them.
    pub fn abandon_copies(&self) {
        for req in self.sender.copies().take_all() {
            self.termination().abandon(&req);
        }
    }

    /// Starts a receive for a message that `key` accepts.
    #[inline(always)]
    pub fn irecv(
        &self,
        matching: &Rc<Matching>,
        receiver: i32,
        key: Key,
        buf: impl Into<RecvTarget>,
    ) -> Req {
        (self.receiver).irecv(&self.core, matching, receiver, key, buf.into())
    }

    /// Cancels an unmatched receive. Returns false if a message has matched the receive.
    pub fn cancel_recv(&self, req: &Req) -> bool {
        recv::cancel(&self.core, req)
    }

    /// Returns the peer from which a receive expects fragments, for the hang report.
    pub fn incoming_from(&self, req: &Req) -> Option<ProcId> {
        recv::fragments::incoming_from(req)
    }

    /// Returns the status of the earliest message that a receive with this key would match. The message is not removed.
    #[inline]
    pub fn iprobe(&self, matching: &Matching, key: Key) -> Option<Status> {
        probe::peek(matching, key)
    }

    /// Removes and returns the earliest message that a receive with this key would match.
    pub fn improbe(&self, matching: &Rc<Matching>, key: Key) -> Option<Message> {
        probe::take(matching, key)
    }

    /// Receives a message that [`Ob1::improbe`] has returned.
    pub fn imrecv(&self, message: Message, receiver: i32, buf: RecvBuf) -> Req {
        self.receiver.imrecv(&self.core, message, receiver, buf)
    }

    /// Sends a short message immediately. Returns false if nothing was sent; the caller must then use the general path.
    #[inline]
    pub fn try_send(
        &self,
        context: Context,
        source: i32,
        proc: ProcId,
        tag: i32,
        data: &[u8],
    ) -> bool {
        fast_path::try_send(self.core.links(), context, source, proc, tag, data)
    }

    /// Starts a blocking receive on the fast path. Returns false if the caller must use the general path.
    #[inline]
    pub fn try_recv_here(
        &self,
        matching: &Matching,
        receiver: i32,
        key: Key,
        buf: RecvBytes,
    ) -> bool {
        self.receiver.slot().begin(matching, receiver, key, buf)
    }

    /// Returns true if the receive on the fast path has completed.
    #[inline]
    pub fn is_here(&self) -> bool {
        self.receiver.slot().is_here()
    }

    /// Returns the outcome of the receive on the fast path, and frees the slot for another receive.
    #[inline]
    pub fn end_here(&self) -> Outcome {
        self.receiver.slot().end(self.core.requests())
    }

    /// Returns the context and key of the receive on the fast path and the size of its buffer in bytes, for the state page.
    pub fn about_here(&self) -> (Context, Key, u64) {
        self.receiver.slot().about()
    }

    /// Returns the values of [`Ob1::about_here`] if a receive waits on the fast path, otherwise `None`.
    pub fn waits_here(&self) -> Option<(Context, Key, u64)> {
        self.receiver.slot().waiting()
    }

    /// Returns the present and the highest memory of unexpected messages of other processes, in bytes.
    pub fn unexpected_bytes(&self) -> (u64, u64) {
        self.receiver.memory().bytes()
    }

    /// Returns true if a peer is lost.
    #[inline]
    pub fn has_losses(&self) -> bool {
        !self.core.losses().is_empty()
    }

    /// Returns the interface for early termination of operations.
    pub fn termination(&self) -> Termination<'_> {
        Termination::of(&self.core, &self.receiver)
    }
}

/// Returns true if [`Ob1::progress`] would have no work now.
#[inline]
pub fn is_idle(pml: &Ob1) -> bool {
    let streams = pml.sender.streams();
    let sends = pml.core.links().is_congested() || streams.are_under_way();
    let receives = pml.receiver.has_copies() || pml.receiver.is_reading();
    !sends && !receives && !pml.core.transfers().are_open() && pml.bml().is_idle()
}

/// Handles the ends of deliveries in place. Returns true if any has ended or data have moved.
#[cold]
fn end_transfers(core: &Core, streams: &Streams) -> bool {
    let moved = core.transfers().have_moved();
    let ended = (core.transfers()).take_ended(core.requests(), core.losses());
    for (open, req, succeeded) in &ended {
        let is_send = matches!(&*req.body.borrow(), Body::Send(_));
        match is_send {
            true => streams.ended_in_place(core, open, req, *succeeded),
            false => recv::in_place::ended(core, open.proc, req, *succeeded),
        }
    }
    moved || !ended.is_empty()
}
