//! Failure of the operations that wait for a lost peer.
//!
//! A transport reports a loss once ([`Sink::lost`](crate::btl::Sink::lost)).
//! Then every operation that only this peer could complete fails with an error that contains the transport's reason:
//! active sends to the peer, receives of data from the peer, and unmatched receives and probes
//! whose source is the peer.
//! A receive or a probe from any source continues while another process of the communicator can
//! send a matching message, and fails when the last such process is lost.
//! The queue of messages to the peer is cleared first: if the transport's buffers are full of data that the peer has
//! not read, the transport would always report that it has no space.

use super::core::Core;
use super::incoming::Incoming;
use super::matching::{Key, Matching};
use super::send::streams;
use crate::btl::ProcId;
use crate::pml::error::PmlError;
use crate::request::{Body, Req};
use mpi_base::state::About;

/// Returns the error of a receive that no remaining process can match; `None` if one can.
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

/// Returns the error of a receive or probe whose possible senders are all lost; `None` if one is left.
pub(super) fn no_sender(core: &Core, matching: &Matching, key: Key) -> Option<PmlError> {
    let me = core.links().me();
    core.losses().no_sender(matching, key, me)
}

/// Fails all operations that only the lost `peer` could complete.
pub(super) fn end_all(core: &Core, peer: ProcId) {
    for req in core.requests().under_way() {
        if let Some(error) = needs(core, &req, peer) {
            withdraw(&req);
            streams::stop(core, &req);
            core.requests().complete(&req, Err(error.into()));
        }
    }
    core.links().clear_queue(peer);
    // A blocking probe has no request, so its wait must be woken explicitly.
    core.requests().nudge();
}

/// Returns the error of an operation that only `peer` could complete; `None` for other operations.
fn needs(core: &Core, req: &Req, peer: ProcId) -> Option<PmlError> {
    match &*req.body.borrow() {
        // The transport may read the data until the transfer ends. Then the send completes with an error.
        Body::Send(send)
            if send
                .stream()
                .is_some_and(|stream| stream.transfer().is_some()) =>
        {
            None
        }
        Body::Send(send) if send.proc() == peer => {
            let About { tag, bytes, .. } = send.about();
            Some(core.losses().gone(peer, tag, bytes))
        }
        Body::Recv(recv) => {
            // The network may write to the receive buffer until the remote read or the delivery in place ends. Then the receive completes with an error.
            if recv.incoming().is_some_and(Incoming::is_written) {
                return None;
            }
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

/// Fails a matched receive if its sender was lost before all data had arrived. Returns true if the sender was lost.
pub(super) fn fail_if_lost(core: &Core, req: &Req, from: ProcId) -> bool {
    let lost = !req.is_complete() && core.losses().has(from);
    if let Some(error) = lost.then(|| needs(core, req, from)).flatten() {
        core.requests().complete(req, Err(error.into()));
    }
    lost
}

/// Removes a receive from its queue. Returns false if a message has already matched the receive, or the request is not a receive.
pub(super) fn withdraw(req: &Req) -> bool {
    match &*req.body.borrow() {
        Body::Recv(recv) => recv.withdraw(req.id()),
        _ => false,
    }
}
