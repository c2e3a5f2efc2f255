//! ob1: eager and rendezvous protocols over any BTL, with matching at the receiver.
//!
//! Protocol, by the size of the message:
//! * up to the BTL's eager limit the data are sent with the match header ([`wire::EAGER`]), and the send is complete when the BTL has accepted them;
//! * longer or synchronous messages send a [`wire::RNDV`] and wait.
//!   When a receive has matched, the receiver fetches the data in a single copy and answers [`wire::FIN`],
//!   or, if that is impossible or slower ([`protocol_choice`]), answers [`wire::CTS`] and gets [`wire::FRAG`]s, so that both sides copy concurrently.
//! * to peers where the eager pipeline is faster, the data of messages of medium length follow the announcement without a CTS ([`recv::eager_pipeline`]).
//! * messages in fragments to one peer take turns ([`send::streams`]);
//! * in the single copy of a large message the sender is asked to copy a part ([`wire::ASSIST`]), and reports the end of its part ([`wire::ASSIST_DONE`]);
//!   if the sender is computing, the receiver copies the whole message itself;
//! * a receiver with too many unexpected short messages makes their senders use rendezvous ([`flow_control`]).
//!
//! Parts, each with private state; [`Ob1`] composes them and passes each arriving message to the part responsible:
//! * [`core::Core`]: the shared state: the peers ([`links`]), the requests, the losses, the observer;
//! * [`recv::Receiver`]: matching, unexpected messages, and the receiver's half of the protocols;
//! * [`send::Sender`]: the protocol of each message, queued messages, and the sender's half of the protocols;
//! * [`peer::Peer`]: the state of each part for one peer;
//! * [`types`]: the type signatures of messages, if they are compared ([`described::Types`]);
//! * [`termination`]: early termination of operations, by [`peer_failure`] and [`interrupt`].
//!
//! Order: a BTL delivers in the order of acceptance, and messages that it did not accept wait in the peer's queue, so matching sees messages in the order of sending.
//!
//! No function of ob1 calls user code, and no interior borrow is held while a BTL or the request table is called.

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
use crate::request::{Outcome, Req, Status, Table};
use config::Config;
use counts::Counts;
use matching::{Key, Matching};
use peer::Peer;
use probe::Message;
use recv::Receiver;
use send::Sender;
use std::rc::Rc;

pub use send::Sent;
pub use termination::Termination;

/// The point-to-point messaging of one process.
pub struct Ob1 {
    core: Core,
    receiver: Receiver,
    sender: Sender,
}

impl Ob1 {
    /// Creates the messaging of a process in a job of `job_size` processes.
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

    /// Returns the number of arriving messages that were dropped as malformed.
    pub fn protocol_errors(&self) -> u64 {
        self.core.protocol_errors()
    }

    /// Returns the matching state of a context, created when a communicator or a message first names it.
    pub fn matching(&self, context: Context) -> Rc<Matching> {
        self.receiver.matcher().matching(context)
    }

    /// Returns the state of [`Ob1::matching`] for a communicator's context.
    /// `peers` are the processes to which the ranks in its messages refer.
    pub fn matching_among(&self, context: Context, peers: &Group) -> Rc<Matching> {
        self.receiver.matcher().matching_among(context, peers)
    }

    /// Removes a freed context and drops its unexpected messages.
    pub fn forget(&self, context: Context) {
        self.receiver.forget(&self.core, context);
    }

    /// Returns the limits of the transport to a peer.
    pub fn limits(&self, proc: ProcId) -> Result<Limits, PmlError> {
        (self.core.links().peer(proc)).map(|peer| *peer.limits())
    }

    /// Removes a process of another job that no communicator names any more.
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
        delivered > 0 || moved
    }

    /// Returns true if this process has work that no event will announce, so that it must not sleep now.
    ///
    /// Messages queued for lack of space do not count: their transport reports when it has space ([`crate::btl::Btl::pending`]).
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

    /// Begins to cancel a send. Returns true if the request is a send.
    pub fn cancel_send(&self, req: &Req) -> bool {
        send::cancel::cancel(&self.core, req)
    }

    /// Completes the copied messages that have been delivered. Returns the number of those left.
    pub fn end_copies(&self) -> usize {
        self.sender.copies().end_all(&self.core)
    }

    /// Abandons the remaining copied messages, for which no receive will be posted.
    pub fn abandon_copies(&self) {
        for req in self.sender.copies().take_all() {
            self.termination().abandon(&req);
        }
    }

    /// Starts a receive of a message that `key` accepts.
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

    /// Cancels an unmatched receive. Returns false if a message has matched it.
    pub fn cancel_recv(&self, req: &Req) -> bool {
        recv::cancel(&self.core, req)
    }

    /// Returns the peer whose fragments a receive waits for, for the hang report.
    pub fn incoming_from(&self, req: &Req) -> Option<ProcId> {
        recv::fragments::incoming_from(req)
    }

    /// Returns the status of the earliest message that a receive with this key would match, without removing it.
    #[inline]
    pub fn iprobe(&self, matching: &Matching, key: Key) -> Option<Status> {
        probe::peek(matching, key)
    }

    /// Removes the earliest message that a receive with this key would match.
    pub fn improbe(&self, matching: &Rc<Matching>, key: Key) -> Option<Message> {
        probe::take(matching, key)
    }

    /// Receives a message that [`Ob1::improbe`] has returned.
    pub fn imrecv(&self, message: Message, receiver: i32, buf: RecvBuf) -> Req {
        self.receiver.imrecv(&self.core, message, receiver, buf)
    }

    /// Sends a short message at once. Returns false if nothing was sent and the general path must send the message.
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

    /// Begins a blocking receive on the fast path. Returns false if the general path must execute the receive.
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

    /// Returns what the receive on the fast path waits for, for the state page.
    pub fn about_here(&self) -> (Context, Key, u64) {
        self.receiver.slot().about()
    }

    /// Returns the values of [`Ob1::about_here`] if a receive waits on the fast path, otherwise `None`.
    pub fn waits_here(&self) -> Option<(Context, Key, u64)> {
        self.receiver.slot().waiting()
    }

    /// Returns the current and the maximum memory of other processes' unexpected messages, in bytes.
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

/// Returns true if [`Ob1::progress`] would have no work at this moment.
#[inline]
pub fn is_idle(pml: &Ob1) -> bool {
    let sends = pml.core.links().is_congested() || pml.sender.streams().are_under_way();
    let receives = pml.receiver.has_copies() || pml.receiver.is_reading();
    !sends && !receives && pml.bml().is_idle()
}
