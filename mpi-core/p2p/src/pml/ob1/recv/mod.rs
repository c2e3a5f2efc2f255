//! The receiving side: a receive from its beginning to its end, whichever way its message comes.
//!
//! A message comes whole ([`short`]), asks first ([`long`]) and may then come in fragments ([`fragments`]), or follows its announcement ([`super::eager_pipeline`]).
//! What a receive remembers meanwhile is its [`body`].

mod body;
mod fragments;
mod long;
mod short;

pub(super) use body::Incoming;
pub use body::RecvBody;

use super::matching::Key;
use super::{Arrived, Content, Matching, Ob1, PmlError};
use crate::datatype::Room;
use crate::request::{Body, Req, Status};
use std::rc::Rc;

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

    /// Gives a receive the message that has come for it; if none has it is to wait, unless no process is left to send one.
    #[inline(never)]
    fn is_to_wait(&self, matching: &Matching, key: Key, req: &Req) -> bool {
        let arrived = matching.unexpected.borrow_mut().take(key);
        if let Some((key, message)) = arrived {
            self.meet_message(req, key, message);
            return false;
        }
        let unmatchable = self.unmatchable(matching, key, req);
        unmatchable.is_none_or(|error| {
            self.requests.complete(req, Err(error.into()));
            false
        })
    }

    /// Gives a message that had already arrived to its receive.
    pub(super) fn meet_message(&self, req: &Req, key: Key, message: Arrived) {
        let (from, bytes) = (message.from, message.content.bytes() as usize);
        let hoarded = message.content.is_charged();
        self.accept(req, key, message);
        if hoarded {
            self.discharge(from, bytes);
        }
    }

    fn accept(&self, req: &Req, key: Key, Arrived { from, content }: Arrived) {
        match content {
            Content::Eager(data) => {
                self.accept_eager(req, key, &data);
                self.buffer_pool.give(data);
            }
            Content::Rendezvous(rendezvous) => self.accept_rendezvous(req, key, from, rendezvous),
            Content::Followed(kept) => self.accept_eager_pipeline(req, key, from, &kept),
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
        if req.has_ended() || !self.withdraw(req) {
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

    /// Gives a request up, whichever thread waits for it; its buffer is not touched again.
    pub fn abandon(&self, req: &Req) {
        self.cancel_recv(req);
        self.abandon_cooperative(req);
        self.release_sender(req);
        self.stop_streaming(req);
        self.requests.release(req);
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
