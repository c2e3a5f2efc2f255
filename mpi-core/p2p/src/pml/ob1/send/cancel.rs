//! Cancellation of an unmatched send (`MPI_Cancel`; MPI 5.0, section 3.8.4).
//!
//! Promise: a cancelled send completes, whatever receives its peer posts: either the send is cancelled, or a receive has matched it and the send proceeds.
//! The peer must be in an MPI call to answer, as for every arriving message.
//!
//! Only a rendezvous needs cancellation; all other messages have been sent or are sent without a receive.
//! A message that has not been announced is taken out of the queue.
//! For an announced message, [`wire::CANCEL`] follows the announcement. The peer drops the message if it is still unmatched; the message may also have been
//! dropped with its communicator. In both cases the answer [`wire::CANCELLED`] completes the send. If a receive has matched the message,
//! there is no answer, because the match itself completes the send.

use super::super::core::Core;
use super::super::wire;
use super::announce::{answered, withdraw};
use crate::btl::{Header, ProcId};
use crate::request::{Body, Req, ReqId, Status};

/// Begins to cancel a send. Returns true if the request is a send.
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

/// Handles CANCELLED: the peer has dropped an unmatched message of this process.
pub fn on_cancelled(core: &Core, from: ProcId, header: Header) {
    answered(core, from);
    // The sender may have abandoned the request; the receiver cannot know that.
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
