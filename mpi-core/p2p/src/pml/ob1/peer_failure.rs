//! Peers that cannot be reached any more, and the operations that waited for them.
//!
//! A transport tells of a loss once ([`Sink::lost`](crate::btl::Sink::lost)).
//! Then every operation that only this peer could complete ends with an error that quotes the transport's sentence:
//! sends under way to it, receives whose data were coming from it, and receives and probes that name it and have met no message.
//! A receive or a probe from any source goes on waiting while another process of its communicator may serve it, and ends with the last of them.
//! What is queued for the peer fails when it is offered to the transport next.
//!
//! After the first loss the express lane's slot stays closed, so that every receive takes the general path, which asks here.

use super::fast_path::Stage;
use super::{Key, Matching, Ob1, PmlError};
use crate::btl::ProcId;
use crate::group::Group;
use crate::pml::Context;
use crate::request::{ANY_SOURCE, Body, Req};
use mpi_base::state::About;
use std::rc::Rc;
use std::sync::Arc;

/// What is kept of a lost peer: the transport's sentence.
pub(super) type Reason = Arc<str>;

impl Matching {
    /// The process a key names, if it names one.
    fn names(&self, key: Key) -> Option<ProcId> {
        let source = u32::try_from(key.source()).ok()?;
        self.peers.borrow().as_ref()?.proc(source)
    }
}

impl Ob1 {
    /// The matching state of a communicator's context; `peers` are those that ranks in its messages name.
    pub fn matching_among(&self, context: Context, peers: &Group) -> Rc<Matching> {
        let matching = self.matching(context);
        *matching.peers.borrow_mut() = Some(peers.clone());
        matching
    }

    /// Why an operation with a peer cannot be completed.
    #[cold]
    pub(super) fn gone(&self, peer: ProcId, tag: i32, bytes: u64) -> PmlError {
        PmlError::PeerGone {
            peer,
            tag,
            bytes,
            why: self.losses.borrow().get(&peer).cloned(),
        }
    }

    /// Whether no peer has been lost; false may also mean that this has to be looked up.
    #[inline(always)]
    pub(super) fn knows_no_loss(&self) -> bool {
        self.slot.resting.get() == Stage::Free
    }

    /// The error of a receive that no process is left to serve, if that is so.
    pub(super) fn unmatchable(&self, matching: &Matching, key: Key, req: &Req) -> Option<PmlError> {
        match self.losses.borrow().is_empty() {
            true => None,
            false => self.is_unmatchable(matching, key, req),
        }
    }

    #[cold]
    fn is_unmatchable(&self, matching: &Matching, key: Key, req: &Req) -> Option<PmlError> {
        match matching.names(key) {
            Some(peer) => {
                let lost = self.losses.borrow().contains_key(&peer);
                lost.then(|| self.needs(req, peer)).flatten()
            }
            None => self.nobody_sends(matching, key),
        }
    }

    /// The error of waiting for a message of which every possible sender is lost, if that is so.
    ///
    /// What this process could send to itself it has sent before it waits, so it does not count.
    pub fn nobody_sends(&self, matching: &Matching, key: Key) -> Option<PmlError> {
        let losses = self.losses.borrow();
        if losses.is_empty() {
            return None;
        }
        let lost = match (matching.names(key), key.source()) {
            (Some(peer), _) => vec![losses.get(&peer)?.clone()],
            (None, ANY_SOURCE) if !self.survives.get() => {
                let peers = matching.peers.borrow();
                let others = peers.as_ref()?.iter().filter(|&p| p != self.bml.me());
                let all: Option<Vec<Reason>> = others.map(|p| losses.get(&p).cloned()).collect();
                all.filter(|all| !all.is_empty())?
            }
            _ => return None,
        };
        Some(PmlError::NobodySends {
            tag: key.tag(),
            lost,
        })
    }

    #[cold]
    pub(super) fn declare_lost(&self, peer: ProcId, why: &str) {
        // The first reason is the cause of those that come later.
        self.losses
            .borrow_mut()
            .entry(peer)
            .or_insert_with(|| why.into());
        self.close_slot(peer);
        for req in self.requests.under_way() {
            if let Some(error) = self.needs(&req, peer) {
                self.withdraw(&req);
                self.requests.complete(&req, Err(error.into()));
            }
        }
        // Callers that probe have no request.
        self.requests.nudge();
    }

    /// The error of an operation that only `peer` could complete.
    fn needs(&self, req: &Req, peer: ProcId) -> Option<PmlError> {
        match &*req.body.borrow() {
            Body::Send(send) if send.proc() == peer && !self.is_queued(req, peer) => {
                let About { tag, bytes, .. } = send.about();
                Some(self.gone(peer, tag, bytes))
            }
            Body::Recv(recv) => {
                let (matching, key, incoming) = recv.from();
                let Some(from) = incoming.or_else(|| matching.names(key)) else {
                    return self.nobody_sends(matching, key);
                };
                let About { tag, bytes, .. } = recv.about();
                (from == peer).then(|| self.gone(peer, tag, bytes))
            }
            _ => None,
        }
    }

    pub(super) fn is_lost(&self, peer: ProcId) -> bool {
        self.losses.borrow().contains_key(&peer)
    }

    /// Ends a receive that has met a message whose sender is lost before all of it has come; answers whether that is so.
    pub(super) fn fail_if_lost(&self, req: &Req, from: ProcId) -> bool {
        let lost = !req.is_complete() && self.is_lost(from);
        if let Some(error) = lost.then(|| self.needs(req, from)).flatten() {
            self.requests.complete(req, Err(error.into()));
        }
        lost
    }

    /// Whether a send will be offered to the transport again, which then says no.
    fn is_queued(&self, req: &Req, peer: ProcId) -> bool {
        let waits = |peer: &super::Peer| {
            let queue = peer.queue.borrow();
            peer.place_in_line(req).is_some()
                || queue
                    .iter()
                    .any(|item| matches!(item, super::Queued::Send(r) if Rc::ptr_eq(r, req)))
        };
        self.peer(peer).is_ok_and(|peer| waits(&peer))
    }

    /// Makes a request of the receive that waits in the express lane's slot, and lets no other in.
    fn close_slot(&self, peer: ProcId) {
        let slot = &self.slot;
        slot.resting.set(Stage::Closed);
        match slot.stage.get() {
            Stage::Free => slot.stage.set(Stage::Closed),
            Stage::Waiting => {
                let matching = self.matching(slot.context.get());
                let key = slot.key.get();
                let bytes = slot.buf.get().len() as u64;
                let error = match matching.names(key) {
                    Some(source) => (source == peer).then(|| self.gone(peer, key.tag(), bytes)),
                    None => self.nobody_sends(&matching, key),
                };
                if let Some(error) = error {
                    let req = self.move_on(&matching);
                    self.requests.complete(&req, Err(error.into()));
                }
            }
            Stage::Here | Stage::Moved | Stage::Closed => {}
        }
    }
}
