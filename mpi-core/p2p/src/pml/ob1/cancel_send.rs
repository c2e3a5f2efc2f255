//! Taking back a message that no receive has asked for (`MPI_Cancel` of a send; MPI 5.0, section 3.8.4).
//!
//! Promise: a send that is cancelled ends, whatever receives its peer posts: it is taken back, or a receive has met it already and it goes its way.
//! The peer has to be in MPI for it, as for everything that arrives.
//!
//! Only a message that waits to be wanted need be taken back; all others have left or leave without a receive.
//! One that has not even been announced is taken out of the queue.
//! Of one that has, the peer is told ([`wire::CANCEL`]), behind the announcement; if it still lies among what came unexpectedly it is dropped there,
//! and the answer ([`wire::CANCELLED`]) ends the send. If not there is no answer, for a receive has it and will be heard of.

use super::peer::Queued;
use super::wire::{self, read_match};
use super::{Content, Ob1};
use crate::btl::{Header, ProcId};
use crate::request::{Body, Req, ReqId, Status};

impl Ob1 {
    /// Begins to take a send back; answers whether the request is one.
    pub fn cancel_send(&self, req: &Req) -> bool {
        let told = match &*req.body.borrow() {
            Body::Send(send) => (!send.is_streaming()).then(|| (send.proc(), send.header())),
            _ => return false,
        };
        let Some((proc, header)) = told.filter(|_| !req.is_complete()) else {
            return true;
        };
        let Ok(peer) = self.peer(proc) else {
            return true;
        };
        let queued = |item: &Queued| matches!(item, Queued::Send(other) if other.id() == req.id());
        let at = peer.queue.borrow().iter().position(queued);
        match at {
            Some(at) => {
                drop(peer.queue.borrow_mut().remove(at));
                self.was_cancelled(req);
            }
            None => self.control(&peer, wire::CANCEL, header, req.id().0.to_le_bytes()),
        }
        true
    }

    /// A peer wants a message of its back.
    pub(super) fn on_cancel(&self, from: ProcId, header: Header, payload: &[u8]) {
        let (Some(sender), Ok(peer)) = (wire::word(payload, 0), self.peer(from)) else {
            return self.nonsense(from, "a malformed cancellation");
        };
        let (context, key) = read_match(header);
        let found = self.contexts.borrow().get(&context).cloned();
        let dropped = found.and_then(|matching| {
            let mut unexpected = matching.unexpected.borrow_mut();
            unexpected.take_one(key, |message| match &message.content {
                Content::Rendezvous(announced) => {
                    message.from == from && announced.sender.0 == sender
                }
                _ => false,
            })
        });
        if dropped.is_some() {
            self.control(&peer, wire::CANCELLED, [sender, 0], [0; 8]);
        }
    }

    /// A peer has dropped a message of ours that no receive had asked for.
    pub(super) fn on_cancelled(&self, from: ProcId, header: Header) {
        self.answered(from);
        // The sender may have given the request up; the receiver cannot know.
        if let Some(req) = self.requests.get(ReqId(header[0]))
            && matches!(&*req.body.borrow(), Body::Send(send) if send.proc() == from)
            && !req.is_complete()
        {
            self.was_cancelled(&req);
        }
    }

    fn was_cancelled(&self, req: &Req) {
        let status = Status {
            cancelled: true,
            ..Status::EMPTY
        };
        self.requests.complete(req, Ok(status));
    }
}
