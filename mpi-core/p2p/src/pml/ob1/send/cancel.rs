//! Taking back a message that no receive has asked for (`MPI_Cancel` of a send; MPI 5.0, section 3.8.4).
//!
//! Promise: a send that is cancelled ends, whatever receives its peer posts: it is taken back, or a receive has met it already and it goes its way.
//! The peer has to be in MPI for it, as for everything that arrives.
//!
//! Only a message that waits to be wanted need be taken back; all others have left or leave without a receive.
//! One that has not even been announced is taken out of the queue.
//! Of one that has, the peer is told ([`wire::CANCEL`]), behind the announcement; if it still lies among what came unexpectedly it is dropped there,
//! or was dropped with its communicator, the answer ([`wire::CANCELLED`]) ends the send. If a receive has it there is no answer, for that will be heard of.

use super::super::core::Core;
use super::super::wire;
use super::announce::answered;
use crate::btl::{Header, ProcId};
use crate::request::{Body, Req, ReqId, Status};

/// Begins to take a send back; answers whether the request is one.
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

/// A peer has dropped a message of ours that no receive had asked for.
pub fn on_cancelled(core: &Core, from: ProcId, header: Header) {
    answered(core, from);
    // The sender may have given the request up; the receiver cannot know.
    if let Some(req) = core.requests().get(ReqId(header[0]))
        && matches!(&*req.body.borrow(), Body::Send(send) if send.proc() == from)
        && !req.is_complete()
    {
        was_cancelled(core, &req);
    }
}

fn was_cancelled(core: &Core, req: &Req) {
    let status = Status {
        cancelled: true,
        ..Status::EMPTY
    };
    core.requests().complete(req, Ok(status));
}
