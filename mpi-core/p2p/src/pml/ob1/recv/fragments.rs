//! Messages that come in fragments: whose each is, and when all have come.
//!
//! A fragment names its receive and its place, and counts only from the peer whose message that receive has met, within what it wants.

use super::body::RecvBody;
use crate::btl::{Header, ProcId};
use crate::pml::ob1::Ob1;
use crate::request::{Body, Req, ReqId};

impl Ob1 {
    /// The receive that `len` bytes of a fragment belong to, if it waits for them.
    pub(in crate::pml::ob1) fn awaited(
        &self,
        from: ProcId,
        header: Header,
        len: usize,
    ) -> Option<Req> {
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

    /// Whether a fragment names a receive that waits for another message or for fewer bytes; one that has been given up names none.
    fn is_foreign(&self, from: ProcId, header: Header, len: usize) -> bool {
        let Some(req) = self.requests.get(ReqId(header[0])) else {
            return !self.requests.was_issued(ReqId(header[0]));
        };
        if req.is_complete() {
            return false;
        }
        match &*req.body.borrow() {
            Body::Recv(RecvBody {
                incoming: Some(incoming),
                ..
            }) => {
                let end = header[1].checked_add(len as u64);
                incoming.from != from || end.is_none_or(|end| end > incoming.wanted)
            }
            _ => true,
        }
    }

    pub(in crate::pml::ob1) fn on_fragment(&self, from: ProcId, header: Header, payload: &[u8]) {
        let Some(req) = self.awaited(from, header, payload.len()) else {
            return match self.is_foreign(from, header, payload.len()) {
                true => self.nonsense(
                    from,
                    "a fragment of a message of another rank, or beyond its end",
                ),
                false => self.protocol_error(),
            };
        };
        if let Body::Recv(recv) = &mut *req.body.borrow_mut() {
            let RecvBody { buf, incoming, .. } = recv;
            let mut put = || buf.unpack_at(header[1] as i64, payload);
            match incoming
                .as_ref()
                .and_then(|incoming| incoming.transfer.as_ref())
            {
                Some(transfer) => transfer.put(put),
                None => put(),
            }
        }
        self.count_fragment(&req, payload.len());
    }

    pub(in crate::pml::ob1) fn count_fragment(&self, req: &Req, len: usize) {
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
    pub(super) fn release_sender(&self, req: &Req) {
        let waiting = match &mut *req.body.borrow_mut() {
            Body::Recv(recv) => recv
                .incoming()
                .and_then(|incoming| Some((incoming.from, incoming.sender.take()?))),
            _ => None,
        };
        if let Some((from, sender)) = waiting
            && let Ok(peer) = self.peer(from)
        {
            self.finished(&peer, sender);
        }
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
