//! What the loss of a peer does to the operations that waited for it.
//!
//! A transport tells of a loss once ([`Sink::lost`](crate::btl::Sink::lost)).
//! Then every operation that only this peer could complete ends with an error that quotes the transport's sentence:
//! sends under way to it, receives whose data were coming from it, and receives and probes that name it and have met no message.
//! A receive or a probe from any source goes on waiting while another process of its communicator may serve it, and ends with the last of them.
//! What waits for room to the peer is taken out of its queues first: a transport whose buffers are full of what the peer has not read reports for all time only that there is no room.

use super::core::Core;
use super::matching::{Key, Matching};
use super::send::streams;
use crate::btl::ProcId;
use crate::pml::error::PmlError;
use crate::request::{Body, Req};
use mpi_base::state::About;

/// The error of a receive that no process is left to serve, if that is so.
pub(super) fn unmatchable(
    core: &Core,
    matching: &Matching,
    key: Key,
    req: &Req,
) -> Option<PmlError> {
    match core.losses().is_empty() {
        true => None,
        false => unmatchable_after_loss(core, matching, key, req),
    }
}

#[cold]
fn unmatchable_after_loss(
    core: &Core,
    matching: &Matching,
    key: Key,
    req: &Req,
) -> Option<PmlError> {
    match matching.names(key) {
        Some(peer) if core.losses().has(peer) => needs(core, req, peer),
        Some(_) => None,
        None => no_sender(core, matching, key),
    }
}

/// The error of waiting for a message of which every possible sender is lost, if that is so.
pub(super) fn no_sender(core: &Core, matching: &Matching, key: Key) -> Option<PmlError> {
    let me = core.links().me();
    core.losses().no_sender(matching, key, me)
}

/// Ends all that only `peer` could complete, which is lost.
pub(super) fn end_all(core: &Core, peer: ProcId) {
    for req in core.requests().under_way() {
        if let Some(error) = needs(core, &req, peer) {
            withdraw(&req);
            streams::stop(core, &req);
            core.requests().complete(&req, Err(error.into()));
        }
    }
    core.links().clear_queue(peer);
    // Callers that probe have no request.
    core.requests().nudge();
}

/// The error of an operation that only `peer` could complete.
fn needs(core: &Core, req: &Req, peer: ProcId) -> Option<PmlError> {
    match &*req.body.borrow() {
        Body::Send(send) if send.proc() == peer => {
            let About { tag, bytes, .. } = send.about();
            Some(core.losses().gone(peer, tag, bytes))
        }
        Body::Recv(recv) => {
            let (matching, key, incoming) = recv.from();
            let Some(from) = incoming.or_else(|| matching.names(key)) else {
                return no_sender(core, matching, key);
            };
            let About { tag, bytes, .. } = recv.about();
            (from == peer).then(|| core.losses().gone(peer, tag, bytes))
        }
        _ => None,
    }
}

/// Ends a receive that has met a message whose sender is lost before all of it has come; answers whether that is so.
pub(super) fn fail_if_lost(core: &Core, req: &Req, from: ProcId) -> bool {
    let lost = !req.is_complete() && core.losses().has(from);
    if let Some(error) = lost.then(|| needs(core, req, from)).flatten() {
        core.requests().complete(req, Err(error.into()));
    }
    lost
}

/// Takes a receive out of its queue; false when a message has met it, or it is none.
pub(super) fn withdraw(req: &Req) -> bool {
    match &*req.body.borrow() {
        Body::Recv(recv) => recv.withdraw(req.id()),
        _ => false,
    }
}
