//! Long payloads that a transport reads straight into the memory of their receive.
//!
//! A fragment says itself where it belongs.
//! A long eager message meets its receive when it begins to come, which keeps the order, since what its sender sent later comes later;
//! from then on the receive waits for one fragment, the message itself, and the sender's [`Peer`](super::Peer) remembers which receive that is.
//! What has no receive yet, or one whose memory is not one run or too small, is delivered whole and takes the general path.

use super::{Body, Key, Ob1, recv, wire};
use crate::btl::{Am, Header, ProcId};
use crate::request::{Req, ReqId};
use std::ops::Range;

impl Ob1 {
    /// A payload of `len` bytes has begun to come; takes the bytes that are there if the rest can be put in place too.
    pub(super) fn begin_direct_receive(
        &self,
        from: ProcId,
        am: Am,
        header: Header,
        len: usize,
        begun: &[u8],
    ) -> bool {
        let header = match am {
            wire::FRAG => Some(header),
            wire::EAGER => self.meet_early(from, header, len),
            _ => None,
        };
        let Some(header) = header.filter(|header| self.awaited(from, *header, len).is_some())
        else {
            return false;
        };
        let mut fill = |place: &mut [u8]| place.copy_from_slice(begun);
        self.place(from, header, 0..begun.len(), &mut fill)
    }

    /// Lets the transport put bytes `range` of a payload where they belong.
    pub(super) fn continue_direct_receive(
        &self,
        from: ProcId,
        am: Am,
        header: Header,
        range: Range<usize>,
        fill: &mut dyn FnMut(&mut [u8]),
    ) -> bool {
        match self.as_fragment(from, am, header) {
            Some(header) => self.place(from, header, range, fill),
            None => false,
        }
    }

    /// All of a payload is in place.
    pub(super) fn end_direct_receive(&self, from: ProcId, am: Am, header: Header, len: usize) {
        let header = self.as_fragment(from, am, header);
        if am == wire::EAGER
            && let Ok(peer) = self.peer(from)
        {
            peer.landing.set(None);
        }
        match header.and_then(|header| self.awaited(from, header, len)) {
            Some(req) => self.count_fragment(&req, len),
            None => self.protocol_error(),
        }
    }

    /// The header of a fragment: where a payload belongs.
    fn as_fragment(&self, from: ProcId, am: Am, header: Header) -> Option<Header> {
        match am {
            wire::FRAG => Some(header),
            wire::EAGER => {
                let ReqId(receive) = self.peer(from).ok()?.landing.get()?;
                Some([receive, 0])
            }
            _ => None,
        }
    }

    fn place(
        &self,
        from: ProcId,
        header: Header,
        range: Range<usize>,
        fill: &mut dyn FnMut(&mut [u8]),
    ) -> bool {
        let Some(req) = self.awaited(from, header, range.end) else {
            return false;
        };
        let mut body = req.body.borrow_mut();
        let Body::Recv(recv) = &mut *body else {
            return false;
        };
        let at = header[1] as usize;
        let place = recv
            .contiguous()
            .and_then(|all| all.get_mut(at + range.start..at + range.end));
        match place {
            Some(place) => {
                fill(place);
                true
            }
            None => false,
        }
    }

    /// Matches an eager message of which only the beginning is there; `None`, and nothing has happened, if it has to be there whole.
    fn meet_early(&self, from: ProcId, header: Header, len: usize) -> Option<Header> {
        let (context, key) = wire::read_match(header);
        let peer = self.peer(from).ok()?;
        let req = self.early_receive(context, key, len)?;
        if let Body::Recv(recv) = &mut *req.body.borrow_mut() {
            recv.expect(recv::Incoming::of(from, len as u64, None));
            if let Some(witness) = self.witness.get() {
                witness.meets(req.id(), context, key, len as u64);
            }
        }
        req.set_status(recv::status(key, len as u64));
        peer.landing.set(Some(req.id()));
        Some([req.id().0, 0])
    }

    /// The receive that an eager message of `len` bytes meets, taken out of its queue, if it has one run of memory for it.
    fn early_receive(&self, context: super::Context, key: Key, len: usize) -> Option<Req> {
        let matching = self.matching(context);
        let slot = &self.slot;
        if slot.takes(context, key) {
            return (slot.buf.get().len() >= len).then(|| self.move_on(&matching));
        }
        let id = *matching.posted.borrow().peek(key)?;
        let req = self.requests.get(id)?;
        let has_room = match &mut *req.body.borrow_mut() {
            Body::Recv(recv) => recv.contiguous().is_some_and(|all| all.len() >= len),
            _ => false,
        };
        (has_room && self.withdraw(&req)).then_some(req)
    }
}
