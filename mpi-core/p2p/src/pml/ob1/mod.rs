//! ob1: eager and rendezvous protocols over any BTL, matching in the receiver.
//!
//! Protocol, by the size of the message:
//! * up to the BTL's eager limit the data travel with the match header ([`wire::EAGER`]) and the send is complete when the BTL has taken them;
//! * longer or synchronous messages send a [`wire::RNDV`] and wait.
//!   When the receive is there, the receiver fetches the data in one copy and says [`wire::FIN`],
//!   or, where that is impossible or slower ([`protocol_choice`]), says [`wire::CTS`] and gets [`wire::FRAG`]s, which both sides work on at once.
//! * data of middling length follow their announcement unasked to peers where that is faster ([`recv::eager_pipeline`]).
//! * what goes in fragments or pieces to one peer takes turns ([`send::streams`]);
//! * of a large message's one copy the sender is asked to do a part ([`wire::ASSIST`]), and says when it has ([`wire::ASSIST_DONE`]);
//!   if it is not there, the receiver has done all of it by itself;
//! * a receiver that holds too many short messages that no receive has asked for has them ask first ([`flow_control`]).
//!
//! Parts, each with its own state, which only it touches; [`Ob1`] composes them and hands each message that arrives to the part whose it is:
//! * [`core::Core`]: what all parts work with: the peers ([`links`]), the requests, the losses, the observer;
//! * [`recv::Receiver`]: matching, what came before its receive, and the receivers' half of the protocols;
//! * [`send::Sender`]: the way of each message, what waits for room, and the senders' half of the protocols;
//! * [`peer::Peer`]: what each of them remembers of one peer;
//! * [`peer_failure`] and [`interrupt`]: what ends operations early.
//!
//! Order: a BTL keeps the order of what it took, and what it did not take waits in the peer's queue, so matching sees messages in the order they were sent.
//!
//! Nothing here calls the user, and no interior borrow is held while a BTL or the request table is called.

mod buffer_pool;
pub mod config;
mod core;
mod dispatch;
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
#[cfg(feature = "testing")]
mod testing;
pub mod wire;

use self::core::Core;
use super::envelope::{Context, Envelope, Mode};
use super::error::PmlError;
use crate::Error;
use crate::bml::Bml;
use crate::btl::{Limits, ProcId};
use crate::datatype::{RecvBuf, RecvBytes, Room, SendBuf};
use crate::group::Group;
use crate::observer::Observer;
use crate::request::{Outcome, Req, Status, Table};
use config::Config;
use matching::{Key, Matching};
use peer::Peer;
use probe::Message;
use recv::Receiver;
use send::Sender;
use std::rc::Rc;

pub use send::Sent;

/// Point-to-point messaging of one process.
pub struct Ob1 {
    core: Core,
    receiver: Receiver,
    sender: Sender,
}

impl Ob1 {
    /// Messaging in a job of `job_size` processes.
    pub fn new(bml: Bml, job_size: u32, config: Config) -> Ob1 {
        Ob1 {
            core: Core::new(bml, job_size, config),
            receiver: Receiver::default(),
            sender: Sender::default(),
        }
    }

    /// All requests of this process, those of collective operations too.
    #[inline]
    pub fn requests(&self) -> &Table {
        self.core.requests()
    }

    /// From now on the observer looks on; the first one stays.
    pub fn set_witness(&self, witness: Rc<dyn Observer>) {
        self.receiver.slot().close();
        self.core.set_observer(witness);
    }

    /// The observer that looks on while messages are matched; nearly always none.
    #[inline]
    pub fn witness(&self) -> Option<&dyn Observer> {
        self.core.observer()
    }

    /// The transports below.
    #[inline]
    pub fn bml(&self) -> &Bml {
        self.core.links().bml()
    }

    /// How many arriving messages were dropped because they made no sense.
    pub fn protocol_errors(&self) -> u64 {
        self.core.protocol_errors()
    }

    /// The matching state of a context, made when either a communicator or a message first names it.
    pub fn matching(&self, context: Context) -> Rc<Matching> {
        self.receiver.matcher().matching(context)
    }

    /// The same for a communicator's context; `peers` are those that ranks in its messages name.
    pub fn matching_among(&self, context: Context, peers: &Group) -> Rc<Matching> {
        self.receiver.matcher().matching_among(context, peers)
    }

    /// Forgets a freed context and what was left in it.
    pub fn forget(&self, context: Context) {
        self.receiver.forget(&self.core, context);
    }

    /// The limits of the transport to a peer.
    pub fn limits(&self, proc: ProcId) -> Result<Limits, PmlError> {
        (self.core.links().peer(proc)).map(|peer| *peer.limits())
    }

    /// Forgets a process of another job, which no communicator names any more.
    pub fn part_from(&self, proc: ProcId) {
        self.core.losses().forget(proc);
        self.core.links().part_from(proc);
    }

    /// Polls the transports and moves what is queued; returns whether anything happened.
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
        delivered > 0 || moved
    }

    /// Whether going to sleep now would miss something.
    ///
    /// Of what a transport had no room for it tells when there is ([`crate::btl::Btl::pending`]).
    pub fn pending(&self) -> bool {
        self.bml().pending() || self.receiver.has_copies()
    }

    /// Starts a send.
    #[inline]
    pub fn isend(&self, envelope: Envelope, buf: SendBuf, mode: Mode) -> Result<Sent, Error> {
        let peer = self.core.links().peer(envelope.proc)?;
        if let Some(observer) = self.core.observer() {
            observer.sends(&envelope, buf.bytes() as u64);
        }
        match (self.sender).try_eager(&self.core, &peer, &envelope, &buf, mode)? {
            true => Ok(Sent::Done),
            false => self.isend_slow(&peer, envelope, buf, mode),
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

    /// Much has been sent unasked: hears what the peer has to say of it.
    #[cold]
    fn poll_after_eager(&self, peer: &Peer) {
        peer.credit().renew();
        self.bml().attend();
        self.bml().progress(self);
    }

    /// Begins to take a send back; answers whether the request is one.
    pub fn cancel_send(&self, req: &Req) -> bool {
        send::cancel::cancel(&self.core, req)
    }

    /// Lets go of copies of messages that are with their receivers; how many are left.
    pub fn end_copies(&self) -> usize {
        self.sender.copies().end_all(&self.core)
    }

    /// No receive will be posted for those that are left.
    pub fn abandon_copies(&self) {
        for req in self.sender.copies().take_all() {
            self.abandon(&req);
        }
    }

    /// Starts a receive of a message that `key` accepts.
    #[inline(always)]
    pub fn irecv(
        &self,
        matching: &Rc<Matching>,
        receiver: i32,
        key: Key,
        buf: impl Into<Room>,
    ) -> Req {
        (self.receiver).irecv(&self.core, matching, receiver, key, buf.into())
    }

    /// Withdraws a receive that no message has met; false when one has.
    pub fn cancel_recv(&self, req: &Req) -> bool {
        recv::cancel(&self.core, req)
    }

    /// The peer whose fragments a receive waits for, for the hang report.
    pub fn incoming_from(&self, req: &Req) -> Option<ProcId> {
        recv::fragments::incoming_from(req)
    }

    /// The earliest message that a receive with this key would take, left where it is.
    pub fn iprobe(&self, matching: &Matching, key: Key) -> Option<Status> {
        probe::peek(matching, key)
    }

    /// Takes the earliest message that a receive with this key would take.
    pub fn improbe(&self, matching: &Rc<Matching>, key: Key) -> Option<Message> {
        probe::take(matching, key)
    }

    /// Receives a message taken by [`Ob1::improbe`].
    pub fn imrecv(&self, message: Message, receiver: i32, buf: RecvBuf) -> Req {
        self.receiver.imrecv(&self.core, message, receiver, buf)
    }

    /// Sends a short message at once; false if the general path has to see to it, and nothing has happened.
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

    /// Begins a blocking receive on the fast path; false if the general path has to see to it.
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

    /// Whether the receive on the fast path has ended.
    #[inline]
    pub fn is_here(&self) -> bool {
        self.receiver.slot().is_here()
    }

    /// The outcome of the receive on the fast path, where there is room for another one.
    #[inline]
    pub fn end_here(&self) -> Outcome {
        self.receiver.slot().end(self.core.requests())
    }

    /// What the receive on the fast path waits for: what the state page tells.
    pub fn about_here(&self) -> (Context, Key, u64) {
        self.receiver.slot().about()
    }

    /// Memory held by messages of others that no receive has asked for, now and at its highest, in bytes.
    pub fn unexpected_bytes(&self) -> (u64, u64) {
        self.receiver.memory().bytes()
    }

    /// The error of waiting for a message of which every possible sender is lost, if that is so.
    pub fn no_sender(&self, matching: &Matching, key: Key) -> Option<PmlError> {
        peer_failure::no_sender(&self.core, matching, key)
    }

    /// From now on every receive takes the general path, which asks whether a peer is lost;
    /// and receives from any source are interrupted by their communicator, where they would end when the last peer is lost.
    pub fn survive_losses(&self) {
        self.receiver.slot().close();
        self.core.losses().survive();
    }

    /// Ends the receives from any source of the user's messages of a communicator that no message has met: no process is left to send one.
    pub fn end_any_source(&self, context: Context, error: &Error) {
        interrupt::end_any_source(&self.core, context, error);
    }

    /// Interrupts the receives from any source of the user's messages of a communicator that no message has met.
    pub fn interrupt_any_source(&self, context: Context, error: &Error) {
        interrupt::interrupt_any_source(&self.core, context, error);
    }

    /// The failures that interrupted them have been acknowledged.
    pub fn resume_any_source(&self, context: Context) {
        interrupt::resume_any_source(&self.core, context);
    }

    /// Gives up what the program has under way on a communicator, by its number: the outcome of all of it will be this error.
    pub fn give_up_all(&self, number: u64, error: &Error) {
        self.receiver.give_up_slot(&self.core, number, error);
        interrupt::give_up_all(&self.core, number, error);
    }

    /// Gives up one operation that has not ended; it has an outcome when its buffer is not touched any more.
    pub fn give_up(&self, req: &Req, error: &Error) {
        interrupt::give_up(&self.core, req, error);
    }

    /// Gives a request up, whichever thread waits for it; its buffer is not touched again.
    pub fn abandon(&self, req: &Req) {
        recv::abandon(&self.core, req);
        send::streams::stop(&self.core, req);
        self.core.requests().release(req);
    }
}
