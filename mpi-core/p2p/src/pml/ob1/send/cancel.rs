//! Cancellation of an unmatched send (`MPI_Cancel`; MPI 5.0, section 3.8.4).
//!
//! Guarantee: a cancelled send completes, no matter which receives the peer posts: either the send is cancelled, or a receive has matched it and the send proceeds.
//! The peer must call MPI to reply, as for every arriving message.
//!
//! Only announced messages need cancellation; all others have been sent or do not wait for a receive.
//! A queued message that has not been announced is removed from the queue.
//! For an announced message, [`wire::CANCEL`] follows the announcement. The peer discards the message if it is unmatched; the peer may also have
//! discarded it when its communicator was freed. In both cases the reply [`wire::CANCELLED`] completes the send. If a receive has matched the message,
//! there is no reply, because the match leads to the completion of the send.

use super::super::core::Core;
use super::super::wire;
use super::announce::{answered, withdraw};
use crate::btl::{Header, ProcId};
use crate::request::{Body, Req, ReqId, Status};

/// Starts to cancel a send. Returns true if the request is a send.
pub fn cancel(core: &Core, req: &Req) -> bool {
    let told = match &*req.body.borrow() {
        Body::Send(send) => (!send.is_streaming()).then(|| (send.proc(), send.header())),
        _ => return false,
    };
    let Some((proc, header)) = told.filter(|_| !req.is_complete()) else {
        return true;
    };
    let Ok(peer) = core.links().peer(proc) else {
        return true;
    };
    match peer.queue().remove(req) {
        true => was_cancelled(core, req),
        false => {
            let request = req.id().0.to_le_bytes();
            core.links().control(&peer, wire::CANCEL, header, request);
        }
    }
    true
}

/// Handles CANCELLED: the peer has discarded an unmatched message of this process.
pub fn on_cancelled(core: &Core, from: ProcId, header: Header) {
    answered(core, from);
    // The request may have been abandoned without notice to the receiver.
    if let Some(req) = core.requests().get(ReqId(header[0]))
        && matches!(&*req.body.borrow(), Body::Send(send) if send.proc() == from)
        && !req.is_complete()
    {
        was_cancelled(core, &req);
    }
}

fn was_cancelled(core: &Core, req: &Req) {
    withdraw(req);
    let status = Status {
        cancelled: true,
        ..Status::EMPTY
    };
    core.requests().complete(req, Ok(status));
}
