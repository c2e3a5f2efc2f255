//! The receiver's side: a receive from posting to completion, by any protocol.
//!
//! A message arrives eagerly ([`meeting`]); or by an announcement ([`rendezvous`]) followed by a single copy ([`single_copy`]), delivery in place ([`in_place`]) or fragments ([`fragments`]);
//! or by the eager pipeline ([`eager_pipeline`]). A transport may write a message directly into the receive buffer ([`direct_receive`]).
//! The memory for unexpected data is limited ([`flow_control`](super::flow_control)).
//!
//! [`Receiver`] combines these modules: it finds the receive for a message or the message for a receive, and passes both to the module of the protocol.

mod answers;
pub mod direct_receive;
pub mod eager_pipeline;
mod events;
mod forgotten;
pub mod fragments;
pub mod in_place;
mod meeting;
mod place;
mod remote_read;
mod rendezvous;
mod single_copy;

use super::core::{Core, HandlerResult, ProtocolError};
use super::described::Described;
use super::fast_path::Slot;
use super::flow_control::UnexpectedMemory;
use super::matcher::{Matcher, is_plausible};
use super::matching::arrived::{Arrived, Content};
use super::matching::{Key, Matching};
use super::peer_failure::{no_sender, unmatchable, withdraw};
use super::probe::Message;
use super::recv_body::RecvBody;
use super::wire::{self, Rendezvous};
use crate::Error;
use crate::btl::{Am, Header, ProcId};
use crate::datatype::{RecvBuf, RecvTarget};
use crate::pml::envelope::Context;
use crate::request::{Body, Req, ReqId, Status};
use direct_receive::Receives;
use forgotten::Forgotten;
use remote_read::RemoteReads;
use rendezvous::Ways;
use single_copy::SingleCopies;
use std::rc::Rc;

#[derive(Default)]
pub struct Receiver {
    matcher: Matcher,
    /// The blocking receive of the fast path.
    slot: Slot,
    /// The flow control's account of unexpected messages.
    memory: UnexpectedMemory,
    copies: SingleCopies,
    reads: RemoteReads,
    /// Announced messages that were unmatched when their communicators were freed.
    forgotten: Forgotten,
}

impl Receiver {
    #[inline]
    pub(super) fn matcher(&self) -> &Matcher {
        &self.matcher
    }

    #[inline]
    pub(super) fn slot(&self) -> &Slot {
        &self.slot
    }

    pub(super) fn memory(&self) -> &UnexpectedMemory {
        &self.memory
    }

    /// Returns true if cooperative copies may have uncopied bytes. They are copied when there is no other work.
    #[inline]
    pub(super) fn has_copies(&self) -> bool {
        self.copies.are_open()
    }

    /// Copies bytes of one cooperative copy that the sender has not copied. Returns true if any bytes were copied.
    pub(super) fn read_rest(&self, core: &Core) -> bool {
        self.copies.read_rest(core)
    }

    /// Returns true if a remote read is active.
    #[inline]
    pub(super) fn is_reading(&self) -> bool {
        self.reads.are_open()
    }

    /// Completes the receives whose remote reads have ended. Returns true if any receive was completed.
    pub(super) fn end_reads(&self, core: &Core) -> bool {
        self.reads.poll(core)
    }

    /// Starts a receive for a message that `key` accepts.
    #[inline(always)]
    pub(super) fn irecv(
        &self,
        core: &Core,
        matching: &Rc<Matching>,
        receiver: i32,
        key: Key,
        buf: RecvTarget,
    ) -> Req {
        let req = core.requests().begin_recv(buf, key, receiver, matching);
        let none_has_come = matching.has_no_unexpected();
        if none_has_come && self.slot.is_open() || self.is_to_wait(core, matching, key, &req) {
            matching.post(key, req.id());
        }
        req
    }

    /// Completes a receive if an unexpected message matches,
    /// or with an error if no possible sender is left.
    /// Returns true if neither is the case; the caller then posts the receive.
    #[inline(never)]
    fn is_to_wait(&self, core: &Core, matching: &Matching, key: Key, req: &Req) -> bool {
        if let Some((key, message)) = matching.take_unexpected(key) {
            self.meet_message(core, req, key, message);
            return false;
        }
        let unmatchable = unmatchable(core, matching, key, req);
        unmatchable.is_none_or(|error| {
            core.requests().complete(req, Err(error.into()));
            false
        })
    }

    /// Starts a receive for a message that a matched probe has returned.
    pub(super) fn imrecv(&self, core: &Core, message: Message, receiver: i32, buf: RecvBuf) -> Req {
        let (key, arrived, matching) = message.into_parts();
        let body = RecvBody::matched(buf.into(), key, receiver, matching);
        let req = core.requests().begin(Body::Recv(body));
        self.meet_message(core, &req, key, arrived);
        req
    }

    /// Processes the match of an unexpected message with a receive.
    fn meet_message(&self, core: &Core, req: &Req, key: Key, message: Arrived) {
        let (from, bytes) = (message.from, message.content.bytes() as usize);
        let charged = message.content.is_charged();
        self.accept(core, req, key, message);
        if charged {
            self.memory.discharge(core, from, bytes);
        }
    }

    fn accept(&self, core: &Core, req: &Req, key: Key, message: Arrived) {
        let Arrived {
            from,
            content,
            types,
        } = message;
        if let Some(described) = types {
            recall(core, req, key, *described);
        }
        match content {
            Content::Eager(data) => {
                meeting::accept_eager(core, req, key, &data);
                self.memory.give(data);
            }
            Content::Rendezvous(announced) => {
                let ways = Ways {
                    copies: &self.copies,
                    reads: &self.reads,
                };
                rendezvous::accept(core, &ways, req, key, from, announced);
            }
            Content::Followed(kept) => {
                eager_pipeline::accept(core, &self.memory, req, key, from, &kept);
            }
        }
    }

    /// Delivers a complete eager message to its posted receive. Returns false if no posted receive matches.
    #[inline(always)]
    pub(super) fn take_eager(
        &self,
        core: &Core,
        context: Context,
        key: Key,
        payload: &[u8],
    ) -> bool {
        if self.slot.takes(context, key) {
            self.slot.land(key, payload);
            return true;
        }
        let receive = self.matcher.take_posted(context, key);
        let accept = |req: &Req| meeting::accept_eager(core, req, key, payload);
        receive.is_some_and(|id| core.requests().with(id, accept).is_some())
    }

    /// Buffers a complete unexpected message.
    #[inline(always)]
    pub(super) fn keep_eager(
        &self,
        core: &Core,
        from: ProcId,
        context: Context,
        key: Key,
        payload: &[u8],
    ) -> HandlerResult {
        let matching = self.matcher.matching(context);
        if !is_plausible(core, from, &matching, key) {
            return Err(ProtocolError("a message in another rank's name"));
        }
        let types = keeps(core, context, key, payload.len() as u64);
        let mut data = self.memory.take(payload.len());
        data.extend_from_slice(payload);
        let message = Arrived {
            from,
            content: Content::Eager(data),
            types,
        };
        matching.keep(key, message);
        core.requests().nudge();
        self.memory.charge(core, from, payload.len());
        Ok(())
    }

    /// Handles a rendezvous announcement; `None` means that the announcement could not be decoded.
    pub(super) fn on_rendezvous(
        &self,
        core: &Core,
        from: ProcId,
        header: Header,
        rendezvous: Option<Rendezvous>,
    ) -> HandlerResult {
        let Some(rendezvous) = rendezvous else {
            return Err(ProtocolError("a malformed announcement"));
        };
        let content = Content::Rendezvous(rendezvous);
        self.announced(core, header, Arrived::new(from, content))
    }

    /// Handles EAGER_START: the announcement of a message whose data follow without a CTS.
    pub(super) fn on_eager_start(
        &self,
        core: &Core,
        from: ProcId,
        header: Header,
        payload: &[u8],
    ) -> HandlerResult {
        let message = eager_pipeline::on_start(core, from, payload)?;
        self.announced(core, header, message)
    }

    /// Passes an announced message to its posted receive, or stores it as unexpected.
    fn announced(&self, core: &Core, header: Header, mut message: Arrived) -> HandlerResult {
        let (context, key) = wire::read_match(header);
        let matching = self.matcher.matching(context);
        if self.slot.takes(context, key) {
            let req = self.slot.move_on(core.requests(), &matching);
            self.accept(core, &req, key, message);
            return Ok(());
        }
        let receive = matching.take_posted(key);
        match receive.and_then(|id| core.requests().get(id)) {
            Some(req) => self.accept(core, &req, key, message),
            None if !is_plausible(core, message.from, &matching, key) => {
                return Err(ProtocolError("an announcement in another rank's name"));
            }
            None => {
                message.types = keeps(core, context, key, message.content.bytes());
                if message.content.is_charged() {
                    let bytes = message.content.bytes() as usize;
                    self.memory.charge(core, message.from, bytes);
                }
                matching.keep(key, message);
                core.requests().nudge();
            }
        }
        Ok(())
    }

    /// Handles EAGER_FRAG, a fragment of an announced message.
    pub(super) fn on_eager_frag(
        &self,
        core: &Core,
        from: ProcId,
        header: Header,
        payload: &[u8],
    ) -> HandlerResult {
        eager_pipeline::on_frag(core, &self.memory, from, header, payload)
    }

    /// Handles ASSIST_DONE: the sender's part of a cooperative copy is complete or has failed.
    pub(super) fn on_assist_done(
        &self,
        core: &Core,
        from: ProcId,
        header: Header,
        payload: &[u8],
    ) -> HandlerResult {
        self.copies.on_assist_done(core, from, header, payload)
    }

    /// Handles CANCEL: discards the announced message if it is unmatched, and confirms the cancellation.
    /// Also confirms it if the message was already discarded because its communicator was freed (permitted at any time after a revocation).
    pub(super) fn on_cancel(
        &self,
        core: &Core,
        from: ProcId,
        header: Header,
        payload: &[u8],
    ) -> HandlerResult {
        let (Some(sender), Ok(peer)) = (wire::word(payload, 0), core.links().peer(from)) else {
            return Err(ProtocolError("a malformed cancellation"));
        };
        let (context, key) = wire::read_match(header);
        let sender_id = ReqId(sender);
        let matching = self.matcher.known(context);
        let lies_here = matching.is_some_and(|m| m.drop_announced(key, from, sender_id));
        if lies_here || self.forgotten.take(from, sender_id) {
            core.links()
                .control(&peer, wire::CANCELLED, [sender, 0], [0; 8]);
        }
        Ok(())
    }

    /// Begins a payload that the transport may write directly into the receive buffer; see [`direct_receive::begin`].
    pub(super) fn begin_direct_receive(
        &self,
        core: &Core,
        from: ProcId,
        am: Am,
        header: Header,
        len: usize,
        begun: &[u8],
    ) -> bool {
        let receives = Receives {
            slot: &self.slot,
            matcher: &self.matcher,
        };
        direct_receive::begin(core, receives, from, am, header, len, begun)
    }

    /// Removes a freed context and discards its unexpected messages.
    pub(super) fn forget(&self, core: &Core, context: Context) {
        let gone = self.matcher.remove(context);
        let unread = gone.filter(|matching| !matching.has_no_unexpected());
        if let Some(matching) = unread {
            self.discard_unexpected(core, &matching);
        }
    }

    /// Discards the unexpected messages of a freed context.
    #[cold]
    fn discard_unexpected(&self, core: &Core, matching: &Matching) {
        for message in matching.take_all() {
            if let Content::Rendezvous(announced) = &message.content {
                self.forgotten.put(message.from, announced.sender);
            }
            if message.content.is_charged() {
                let bytes = message.content.bytes() as usize;
                self.memory.discharge(core, message.from, bytes);
            }
        }
    }

    /// Closes the fast path's slot after the loss of `peer`. The receive in the slot fails if no remaining
    /// process can send a matching message.
    pub(super) fn close_slot(&self, core: &Core, peer: ProcId) {
        let waiting = self.slot.waiting();
        self.slot.close();
        let Some((context, key, bytes)) = waiting else {
            return;
        };
        let matching = self.matcher.matching(context);
        let error = match matching.names(key) {
            Some(source) => (source == peer).then(|| core.losses().gone(peer, key.tag(), bytes)),
            None => no_sender(core, &matching, key),
        };
        if let Some(error) = error {
            let req = self.slot.move_on(core.requests(), &matching);
            core.requests().complete(&req, Err(error.into()));
        }
    }

    /// Fails the receive in the fast path's slot with `error`,
    /// if the receive is on the communicator with the ID `number`.
    pub(super) fn give_up_slot(&self, core: &Core, number: u64, error: &Error) {
        let waiting = self.slot.waiting();
        let Some((context, ..)) = waiting.filter(|(context, ..)| context.number() == number) else {
            return;
        };
        let matching = self.matcher.matching(context);
        let req = self.slot.move_on(core.requests(), &matching);
        core.requests().complete(&req, Err(error.clone()));
    }
}

/// Counts an unexpected message and reports it to the observer.
/// Returns the message's datatype description, if type signatures are compared.
#[inline]
fn keeps(core: &Core, context: Context, key: Key, bytes: u64) -> Option<Box<Described>> {
    core.counts().keeps();
    let observer = core.observer()?;
    observer.keeps(context, key, bytes);
    core.types()?.take(context, key).map(Box::new)
}

/// Stores the description of an unexpected message again, as the latest of its key, which `types::mismatch` compares with the receive.
#[cold]
fn recall(core: &Core, req: &Req, key: Key, described: Described) {
    if let (Body::Recv(recv), Some(types)) = (&*req.body.borrow(), core.types()) {
        types.put(recv.from().0.context(), key, described);
    }
}

/// Cancels an unmatched receive. Returns false if a message has already matched the receive.
pub fn cancel(core: &Core, req: &Req) -> bool {
    if req.has_ended() || !withdraw(req) {
        return false;
    }
    let status = Status {
        cancelled: true,
        ..Status::EMPTY
    };
    core.requests().complete(req, Ok(status));
    true
}

/// Abandons a request if it is a receive. After the call no process accesses the receive buffer.
pub fn abandon(core: &Core, req: &Req) {
    cancel(core, req);
    single_copy::abandon(core, req);
    remote_read::abandon(core, req);
    in_place::abandon(core, req);
    answers::release_sender(core, req);
}
