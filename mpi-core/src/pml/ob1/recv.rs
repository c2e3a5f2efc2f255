//! The receiving side.

use super::copy::{Copied, Shared};
use super::matching::Key;
use super::pace::{Transfer, Way};
use super::wire::{self, Rendezvous};
use super::{Arrived, Content, Matching, Ob1, PmlError};
use crate::btl::{Header, ProcId};
use crate::datatype::{RecvBytes, Room};
use crate::pml::Context;
use crate::request::{Body, Req, ReqId, Status};
use mpi_base::state::About;
use std::cell::Cell;
use std::rc::Rc;

/// A receive under way.
pub struct RecvBody {
    buf: Room,
    key: Key,
    /// The receiver's rank in the communicator, for error texts.
    receiver: i32,
    matching: Rc<Matching>,
    /// Set once a message was matched whose data come piece by piece; apart, because most receives never have it.
    incoming: Option<Box<Incoming>>,
}

pub(super) struct Incoming {
    pub(super) from: ProcId,
    pub(super) received: u64,
    pub(super) wanted: u64,
    /// The send that waits for our word that all has come.
    sender: Option<ReqId>,
    /// Reported when all that fits has come.
    truncated: Option<PmlError>,
    /// Set while both sides work on one copy.
    pub(super) shared: Option<Shared>,
    /// Set if it is measured how fast it comes.
    pub(super) transfer: Option<Transfer>,
}

impl Incoming {
    /// A message that nothing has come of yet.
    pub(super) fn of(from: ProcId, wanted: u64, truncated: Option<PmlError>) -> Incoming {
        Incoming {
            from,
            received: 0,
            wanted,
            sender: None,
            truncated,
            shared: None,
            transfer: None,
        }
    }
}

impl RecvBody {
    /// Where from, with which tag, how many bytes at most: what the state page tells.
    pub(crate) fn about(&self) -> About {
        self.matching.about(self.key, self.buf.bytes())
    }

    /// Whether it holds no memory beyond its own.
    #[inline]
    pub(crate) fn is_light(&self) -> bool {
        matches!(self.buf, Room::Bytes(_)) && self.incoming.is_none()
    }

    /// Whether its messages come in this context.
    #[inline]
    pub(crate) fn is_in(&self, matching: &Rc<Matching>) -> bool {
        Rc::ptr_eq(&self.matching, matching)
    }

    /// Makes a [light](RecvBody::is_light) receive another one of the same context.
    #[inline(always)]
    pub(crate) fn renew(&mut self, bytes: RecvBytes, key: Key, receiver: i32) {
        // Word by word: what is put together elsewhere and then copied in one piece stalls the processor.
        if let Room::Bytes(place) = &mut self.buf {
            *place = bytes;
        }
        self.key = key;
        self.receiver = receiver;
    }

    /// What can complete it: a message of this context and key, or the process whose message it has met.
    pub(super) fn from(&self) -> (&Matching, Key, Option<ProcId>) {
        let incoming = self.incoming.as_ref().map(|incoming| incoming.from);
        (&self.matching, self.key, incoming)
    }

    /// The message it has met, if it does not come in one go.
    pub(super) fn incoming(&mut self) -> Option<&mut Incoming> {
        self.incoming.as_deref_mut()
    }

    /// Shows the places of the first `len` bytes to `f`, if they are in few and long runs.
    pub(super) fn in_runs<R>(
        &mut self,
        len: u64,
        f: impl FnOnce(&[&[Cell<u8>]]) -> R,
    ) -> Option<R> {
        self.buf.in_runs(len, f)
    }

    /// The whole memory as one slice, if it is one run.
    pub(super) fn contiguous(&mut self) -> Option<&mut [u8]> {
        self.buf.contiguous()
    }

    /// The message it met comes piece by piece.
    pub(super) fn expect(&mut self, incoming: Incoming) {
        self.incoming = Some(Box::new(incoming));
    }

    /// Puts packed bytes from `at` on where they belong, as far as they are wanted; answers how many were.
    pub(super) fn put(&mut self, at: u64, data: &[u8]) -> usize {
        let wanted = (self.incoming.as_ref()).map_or(u64::MAX, |incoming| incoming.wanted);
        let room = usize::try_from(wanted.saturating_sub(at)).unwrap_or(usize::MAX);
        let data = &data[..data.len().min(room)];
        self.buf.unpack_at(at as i64, data);
        data.len()
    }

    /// A receive whose message is known already.
    #[inline(always)]
    pub(crate) fn matched(buf: Room, key: Key, receiver: i32, matching: Rc<Matching>) -> RecvBody {
        RecvBody {
            buf,
            key,
            receiver,
            matching,
            incoming: None,
        }
    }
}

impl Ob1 {
    /// Starts a receive of a message that `key` accepts.
    #[inline(always)]
    pub fn irecv(
        &self,
        matching: &Rc<Matching>,
        receiver: i32,
        key: Key,
        buf: impl Into<Room>,
    ) -> Req {
        let req = self
            .requests
            .begin_recv(buf.into(), key, receiver, matching);
        let none_has_come = matching.unexpected.borrow().is_empty();
        if none_has_come && self.knows_no_loss() || self.is_to_wait(matching, key, &req) {
            matching.posted.borrow_mut().post(key, req.id());
        }
        req
    }

    /// Gives a receive the message that has come for it; if none has it is to wait, unless nobody is left to send one.
    #[inline(never)]
    fn is_to_wait(&self, matching: &Matching, key: Key, req: &Req) -> bool {
        let arrived = matching.unexpected.borrow_mut().take(key);
        if let Some((key, message)) = arrived {
            self.meet_message(req, key, message);
            return false;
        }
        let in_vain = self.in_vain(matching, key, req);
        in_vain.is_none_or(|error| {
            self.requests.complete(req, Err(error.into()));
            false
        })
    }

    /// Gives a message that had already arrived to its receive.
    pub(super) fn meet_message(&self, req: &Req, key: Key, message: Arrived) {
        let (from, bytes) = (message.from, message.content.bytes() as usize);
        let hoarded = message.content.is_hoarded();
        self.accept(req, key, message);
        if hoarded {
            self.unhoard(from, bytes);
        }
    }

    fn accept(&self, req: &Req, key: Key, Arrived { from, content }: Arrived) {
        match content {
            Content::Eager(data) => {
                self.accept_eager(req, key, &data);
                self.stash.give(data);
            }
            Content::Rendezvous(rendezvous) => self.accept_rendezvous(req, key, from, rendezvous),
            Content::Followed(kept) => self.accept_followed(req, key, from, &kept),
        }
    }

    #[inline(always)]
    pub(super) fn on_eager(&self, from: ProcId, header: Header, payload: &[u8]) {
        let (context, key) = wire::read_match(header);
        if self.slot.takes(context, key) {
            return self.land(key, payload);
        }
        let recent = self.recent.borrow();
        let receive = match &*recent {
            Some(matching) if matching.context == context => {
                let receive = matching.posted.borrow_mut().take(key);
                drop(recent);
                receive
            }
            _ => {
                drop(recent);
                self.take_elsewhere(context, key)
            }
        };
        if let Some(id) = receive
            && let Some(()) = (self.requests).with(id, |req| self.accept_eager(req, key, payload))
        {
            return;
        }
        self.keep_eager(from, context, key, payload);
    }

    /// Takes the receive for a message in another context than that of the message before.
    #[inline(never)]
    fn take_elsewhere(&self, context: Context, key: Key) -> Option<ReqId> {
        self.matching(context).posted.borrow_mut().take(key)
    }

    /// A short message has come before its receive.
    #[inline(never)]
    fn keep_eager(&self, from: ProcId, context: Context, key: Key, payload: &[u8]) {
        let mut data = self.stash.take(payload.len());
        data.extend_from_slice(payload);
        let message = Arrived {
            from,
            content: Content::Eager(data),
        };
        let matching = self.matching(context);
        matching.unexpected.borrow_mut().push(key, message);
        self.requests.nudge();
        self.hoard(from, payload.len());
    }

    #[inline]
    fn accept_eager(&self, req: &Req, key: Key, data: &[u8]) {
        let mut body = req.body.borrow_mut();
        let Body::Recv(recv) = &mut *body else {
            return self.garble();
        };
        let bytes = data.len() as u64;
        let (capacity, light) = match &mut recv.buf {
            Room::Bytes(room) => {
                room.fill(data);
                (room.len() as u64, recv.incoming.is_none())
            }
            room => {
                room.fill(data);
                (room.bytes(), false)
            }
        };
        if let Some(witness) = self.witness.get() {
            witness.meets(req.id(), recv.matching.context(), key, bytes);
        }
        req.set_status(status(key, bytes.min(capacity)));
        if bytes <= capacity {
            return match light {
                true => self.requests.complete_light(req),
                false => self.requests.complete_ok(req),
            };
        }
        let error = truncated(recv.receiver, key, bytes, capacity);
        drop(body);
        self.requests.complete(req, Err(error.into()));
    }

    pub(super) fn on_rendezvous(&self, from: ProcId, header: Header, payload: &[u8]) {
        let Some(rendezvous) = Rendezvous::decode(payload) else {
            return self.garble();
        };
        let content = Content::Rendezvous(rendezvous);
        self.announced(header, Arrived { from, content });
    }

    /// Gives a message that was announced to its receive, or keeps it.
    pub(super) fn announced(&self, header: Header, message: Arrived) {
        let (context, key) = wire::read_match(header);
        let matching = self.matching(context);
        if self.slot.takes(context, key) {
            let req = self.move_on(&matching);
            return self.accept(&req, key, message);
        }
        let receive = matching.posted.borrow_mut().take(key);
        match receive.and_then(|id| self.requests.get(id)) {
            Some(req) => self.accept(&req, key, message),
            None => {
                if message.content.is_hoarded() {
                    self.hoard(message.from, message.content.bytes() as usize);
                }
                matching.unexpected.borrow_mut().push(key, message);
                self.requests.nudge();
            }
        }
    }

    /// What a receive wants of a message of `bytes` bytes that it has met, and the error if that is not all.
    pub(super) fn meets(&self, req: &Req, key: Key, bytes: u64) -> Option<(u64, Option<PmlError>)> {
        let body = req.body.borrow();
        let Body::Recv(recv) = &*body else {
            return None;
        };
        let capacity = recv.buf.bytes();
        if let Some(witness) = self.witness.get() {
            witness.meets(req.id(), recv.matching.context(), key, bytes);
        }
        let too_long = (bytes > capacity).then(|| truncated(recv.receiver, key, bytes, capacity));
        let wanted = bytes.min(capacity);
        req.set_status(status(key, wanted));
        Some((wanted, too_long))
    }

    /// The receive for a waiting message is there: fetch the data, or ask for them.
    fn accept_rendezvous(&self, req: &Req, key: Key, from: ProcId, rendezvous: Rendezvous) {
        let peer = match self.peer(from) {
            Ok(peer) => peer.clone(),
            Err(e) => return self.requests.complete(req, Err(e.into())),
        };
        let Some((wanted, too_long)) = self.meets(req, key, rendezvous.bytes) else {
            return self.garble();
        };
        let mut transfer = self.measured(&peer, req, &rendezvous, wanted);
        let copied = match &transfer {
            Some(Transfer {
                way: Way::Fragments,
                ..
            }) => Copied::Nothing,
            _ => self.copy(&peer, req, &rendezvous, wanted),
        };
        match copied {
            Copied::All => {
                if let Some(transfer) = transfer {
                    let (_, bytes) = transfer.ends();
                    self.advise(&peer, bytes);
                }
                self.finished(&peer, rendezvous.sender);
                return self.end(req, too_long);
            }
            Copied::Nothing => transfer = transfer.filter(|t| t.way == Way::Fragments),
            Copied::Shared(_) => {}
        }
        let shared = match copied {
            Copied::Shared(shared) => Some(shared),
            _ => None,
        };
        let alone = shared.is_none();
        {
            let mut body = req.body.borrow_mut();
            let Body::Recv(recv) = &mut *body else { return };
            recv.expect(Incoming {
                sender: peer.patient.then_some(rendezvous.sender),
                shared,
                transfer,
                ..Incoming::of(from, wanted, too_long)
            });
        }
        if self.fail_if_lost(req, from) {
            // Nobody is left to ask.
        } else if alone {
            self.ask_for_fragments(&peer, rendezvous.sender, req, wanted);
        } else {
            self.go_on_sharing(&peer, req);
        }
    }

    /// The sender's memory is its own again.
    pub(super) fn finished(&self, peer: &Rc<super::Peer>, sender: ReqId) {
        self.control(peer, wire::FINISHED, [sender.0, 0], [0; 8]);
    }

    pub(super) fn ask_for_fragments(
        &self,
        peer: &Rc<super::Peer>,
        sender: ReqId,
        req: &Req,
        wanted: u64,
    ) {
        let header = [sender.0, req.id().0];
        self.control(peer, wire::CLEAR, header, wanted.to_le_bytes());
    }

    /// The receive that `len` bytes of a fragment belong to, if it waits for them.
    pub(super) fn awaited(&self, from: ProcId, header: Header, len: usize) -> Option<Req> {
        let req = self.requests.get(ReqId(header[0]))?;
        let fits = match &*req.body.borrow() {
            Body::Recv(RecvBody {
                incoming: Some(incoming),
                ..
            }) => {
                let end = header[1].checked_add(len as u64);
                incoming.from == from
                    && incoming.shared.is_none()
                    && end.is_some_and(|end| end <= incoming.wanted)
            }
            _ => false,
        };
        (fits && !req.is_complete()).then_some(req)
    }

    pub(super) fn on_fragment(&self, from: ProcId, header: Header, payload: &[u8]) {
        let Some(req) = self.awaited(from, header, payload.len()) else {
            return self.garble();
        };
        if let Body::Recv(recv) = &mut *req.body.borrow_mut() {
            recv.buf.unpack_at(header[1] as i64, payload);
        }
        self.count_fragment(&req, payload.len());
    }

    pub(super) fn count_fragment(&self, req: &Req, len: usize) {
        let ended = match &mut *req.body.borrow_mut() {
            Body::Recv(RecvBody {
                incoming: Some(incoming),
                ..
            }) => {
                incoming.received += len as u64;
                let over = incoming.received >= incoming.wanted;
                over.then(|| (incoming.truncated.take(), incoming.transfer.take()))
            }
            _ => None,
        };
        if let Some((too_long, transfer)) = ended {
            if let Some(transfer) = transfer {
                let (peer, bytes) = transfer.ends();
                self.advise(&peer, bytes);
            }
            self.release_sender(req);
            self.end(req, too_long);
        }
    }

    /// Tells a send that waits for it that nothing of it is wanted any more.
    fn release_sender(&self, req: &Req) {
        let waiting = match &mut *req.body.borrow_mut() {
            Body::Recv(recv) => recv
                .incoming()
                .and_then(|incoming| Some((incoming.from, incoming.sender.take()?))),
            _ => None,
        };
        if let Some((from, sender)) = waiting
            && let Ok(peer) = self.peer(from)
        {
            self.finished(peer, sender);
        }
    }

    pub(super) fn end(&self, req: &Req, too_long: Option<PmlError>) {
        match too_long {
            None => self.requests.complete_ok(req),
            Some(error) => self.requests.complete(req, Err(error.into())),
        }
    }

    /// Withdraws a receive that no message has met; false when one has.
    pub fn cancel_recv(&self, req: &Req) -> bool {
        if req.is_complete() || !self.withdraw(req) {
            return false;
        }
        let status = Status {
            cancelled: true,
            ..Status::EMPTY
        };
        self.requests.complete(req, Ok(status));
        true
    }

    /// Takes a receive out of its queue; false when a message has met it.
    pub(super) fn withdraw(&self, req: &Req) -> bool {
        let (matching, key) = match &*req.body.borrow() {
            Body::Recv(recv) => (recv.matching.clone(), recv.key),
            _ => return false,
        };
        matching.posted.borrow_mut().remove(key, &req.id())
    }

    /// Gives a request up whoever waits for it; its buffer is not touched again.
    pub fn abandon(&self, req: &Req) {
        self.cancel_recv(req);
        self.give_up_sharing(req);
        self.release_sender(req);
        self.stop_streaming(req);
        self.requests.release(req);
    }

    /// The peer whose fragments a receive waits for, for the hang report.
    pub fn incoming_from(&self, req: &Req) -> Option<ProcId> {
        match &*req.body.borrow() {
            Body::Recv(RecvBody {
                incoming: Some(incoming),
                ..
            }) => Some(incoming.from),
            _ => None,
        }
    }
}

#[inline]
pub(super) fn status(key: Key, bytes: u64) -> Status {
    Status {
        source: key.source(),
        tag: key.tag(),
        bytes,
        cancelled: false,
    }
}

#[cold]
pub(super) fn truncated(receiver: i32, key: Key, bytes: u64, capacity: u64) -> PmlError {
    PmlError::Truncated {
        receiver,
        source: key.source(),
        tag: key.tag(),
        bytes,
        capacity,
    }
}
