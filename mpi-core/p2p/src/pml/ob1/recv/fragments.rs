//! Messages in fragments: assigns each fragment to its receive, and completes the receive after the last fragment.
//!
//! The header of a fragment contains its receive and its offset. A fragment is accepted only from the peer whose
//! message the receive has matched, and only within the bytes that fit into the receive buffer.

use super::super::core::{Core, HandlerResult, ProtocolError};
use super::super::incoming::Ended;
use super::answers::{advise, release_sender};
use super::events::show;
use super::place;
use crate::btl::{Header, ProcId};
use crate::request::{Body, Req, ReqId};

/// Returns the receive of a fragment of `len` bytes, if the receive waits for these bytes.
pub fn awaited(core: &Core, from: ProcId, header: Header, len: usize) -> Option<Req> {
    let req = core.requests().get(ReqId(header[0]))?;
    let fits = match &*req.body.borrow() {
        Body::Recv(recv) => recv
            .incoming()
            .is_some_and(|incoming| incoming.takes(from, header, len) && !incoming.is_copied()),
        _ => false,
    };
    // A sender that does not deliver in place sends fragments.
    (fits && !req.is_complete() && place::withdraw(core, from, &req)).then_some(req)
}

/// Returns true if a fragment is a protocol error: its receive never existed, waits for another message
/// or for fewer bytes, or gets its data in place. Returns false if the receive is complete or was abandoned.
fn is_foreign(core: &Core, from: ProcId, header: Header, len: usize) -> bool {
    let Some(req) = core.requests().get(ReqId(header[0])) else {
        return !core.requests().was_issued(ReqId(header[0]));
    };
    if req.is_complete() {
        return false;
    }
    match &*req.body.borrow() {
        Body::Recv(recv) => recv.incoming().is_none_or(|incoming| {
            !incoming.takes(from, header, len) || incoming.place().is_some()
        }),
        _ => true,
    }
}

pub fn on_fragment(core: &Core, from: ProcId, header: Header, payload: &[u8]) -> HandlerResult {
    let Some(req) = awaited(core, from, header, payload.len()) else {
        if is_foreign(core, from, header, payload.len()) {
            return Err(ProtocolError(
                "a fragment of a message of another rank, beyond its end, or of one that is delivered in place",
            ));
        }
        core.protocol_error();
        return Ok(());
    };
    if let Body::Recv(recv) = &mut *req.body.borrow_mut() {
        recv.put_fragment(header[1], payload);
    }
    count(core, &req, header[1], payload.len());
    Ok(())
}

/// Counts `len` bytes at offset `at` of a message that are in the receive buffer. The last bytes complete the receive.
pub fn count(core: &Core, req: &Req, at: u64, len: usize) {
    let (from, ended) = match &mut *req.body.borrow_mut() {
        Body::Recv(recv) => match recv.incoming_mut() {
            Some(incoming) => (incoming.from(), incoming.count(at..at + len as u64)),
            None => return,
        },
        _ => return,
    };
    if let Some(Ended {
        truncated,
        transfer,
        announced,
    }) = ended
    {
        if let Some((key, bytes)) = announced {
            show(core, req, key, bytes, false);
        }
        if let Some(transfer) = transfer {
            advise(core, from, transfer.ends());
        }
        release_sender(core, req);
        core.end(req, truncated);
    }
}

/// Returns the peer from which a receive expects fragments, for the hang report.
pub fn incoming_from(req: &Req) -> Option<ProcId> {
    match &*req.body.borrow() {
        Body::Recv(recv) => recv.from().2,
        _ => None,
    }
}
