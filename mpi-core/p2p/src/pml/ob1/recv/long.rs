//! Messages that ask first: an announcement meets its receive, which fetches the data in one copy, has its sender help with that, or asks for fragments.
//!
//! Whichever it is, a sender that lent its memory hears [`wire::FIN`] when no process reads it any more.

use super::body::Incoming;
use super::{status, truncated};
use crate::btl::{Header, ProcId};
use crate::pml::PmlError;
use crate::pml::ob1::matching::Key;
use crate::pml::ob1::peer::Peer;
use crate::pml::ob1::protocol_choice::{TimedTransfer, Way};
use crate::pml::ob1::single_copy::Copied;
use crate::pml::ob1::wire::{self, Rendezvous};
use crate::pml::ob1::{Arrived, Content, Ob1};
use crate::request::{Body, Req, ReqId};
use std::rc::Rc;

impl Ob1 {
    pub(in crate::pml::ob1) fn on_rendezvous(&self, from: ProcId, header: Header, payload: &[u8]) {
        let Some(rendezvous) = Rendezvous::decode(payload) else {
            return self.nonsense(from, "a malformed announcement");
        };
        let content = Content::Rendezvous(rendezvous);
        self.announced(header, Arrived { from, content });
    }

    /// Gives a message that was announced to its receive, or keeps it.
    pub(in crate::pml::ob1) fn announced(&self, header: Header, message: Arrived) {
        let (context, key) = wire::read_match(header);
        let matching = self.matching(context);
        if self.slot.takes(context, key) {
            let req = self.move_on(&matching);
            return self.accept(&req, key, message);
        }
        let receive = matching.posted.borrow_mut().take(key);
        match receive.and_then(|id| self.requests.get(id)) {
            Some(req) => self.accept(&req, key, message),
            None if !self.is_plausible(message.from, &matching, key) => {
                self.nonsense(message.from, "an announcement in another rank's name");
            }
            None => {
                if message.content.is_charged() {
                    self.charge(message.from, message.content.bytes() as usize);
                }
                matching.unexpected.borrow_mut().push(key, message);
                self.requests.nudge();
            }
        }
    }

    /// What a receive wants of a message of `bytes` bytes that it has met, and the error if that is not all.
    pub(in crate::pml::ob1) fn meets(
        &self,
        req: &Req,
        key: Key,
        bytes: u64,
    ) -> Option<(u64, Option<PmlError>)> {
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
    pub(super) fn accept_rendezvous(
        &self,
        req: &Req,
        key: Key,
        from: ProcId,
        rendezvous: Rendezvous,
    ) {
        let peer = match self.peer(from) {
            Ok(peer) => peer.clone(),
            Err(e) => return self.requests.complete(req, Err(e.into())),
        };
        let Some((wanted, too_long)) = self.meets(req, key, rendezvous.bytes) else {
            return self.protocol_error();
        };
        let mut transfer = self.measured(&peer, req, &rendezvous, wanted);
        let copied = match &transfer {
            Some(TimedTransfer {
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
                sender: peer.fin_required.then_some(rendezvous.sender),
                shared,
                transfer,
                ..Incoming::of(from, wanted, too_long)
            });
        }
        if self.fail_if_lost(req, from) {
            // No process is left to ask.
        } else if alone {
            self.ask_for_fragments(&peer, rendezvous.sender, req, wanted);
        } else {
            self.continue_cooperative(&peer, req);
        }
    }

    /// The sender's memory is its own again.
    pub(in crate::pml::ob1) fn finished(&self, peer: &Rc<Peer>, sender: ReqId) {
        self.control(peer, wire::FIN, [sender.0, 0], [0; 8]);
    }

    pub(in crate::pml::ob1) fn ask_for_fragments(
        &self,
        peer: &Rc<Peer>,
        sender: ReqId,
        req: &Req,
        wanted: u64,
    ) {
        let header = [sender.0, req.id().0];
        self.control(peer, wire::CTS, header, wanted.to_le_bytes());
    }
}
