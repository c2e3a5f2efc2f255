//! Messages that come whole: into their receive, or kept until it is there.

use super::{status, truncated};
use crate::btl::{Header, ProcId};
use crate::datatype::Room;
use crate::pml::Context;
use crate::pml::ob1::matching::Key;
use crate::pml::ob1::{Arrived, Content, Ob1, wire};
use crate::request::{Body, Req, ReqId};

impl Ob1 {
    #[inline(always)]
    pub(in crate::pml::ob1) fn on_eager(&self, from: ProcId, header: Header, payload: &[u8]) {
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
        let matching = self.matching(context);
        if !self.is_plausible(from, &matching, key) {
            return self.nonsense(from, "a message in another rank's name");
        }
        let mut data = self.buffer_pool.take(payload.len());
        data.extend_from_slice(payload);
        let message = Arrived {
            from,
            content: Content::Eager(data),
        };
        matching.unexpected.borrow_mut().push(key, message);
        self.requests.nudge();
        self.charge(from, payload.len());
    }

    #[inline]
    pub(super) fn accept_eager(&self, req: &Req, key: Key, data: &[u8]) {
        let mut body = req.body.borrow_mut();
        let Body::Recv(recv) = &mut *body else {
            return self.protocol_error();
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
}
