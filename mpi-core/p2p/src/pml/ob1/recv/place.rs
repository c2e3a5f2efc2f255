//! The posted buffer of a receive, the place for a delivery in place.

use super::super::core::Core;
use super::super::incoming::Incoming;
use crate::btl::ProcId;
use crate::request::{Body, Req};

/// Returns the ID of the transfer for which a receive waits.
pub fn place_of(req: &Req) -> Option<u64> {
    match &*req.body.borrow() {
        Body::Recv(recv) => recv.incoming().and_then(Incoming::place),
        _ => None,
    }
}

/// Removes and returns the ID of the transfer for which a receive waits.
pub fn end_place(req: &Req) -> Option<u64> {
    match &mut *req.body.borrow_mut() {
        Body::Recv(recv) => recv.incoming_mut().and_then(Incoming::end_place),
        _ => None,
    }
}

/// Withdraws the posted buffer of a receive whose message arrives in fragments.
/// A failed transfer has already released the buffer.
/// Returns false if the transport may write to the buffer.
#[inline]
pub fn withdraw(core: &Core, from: ProcId, req: &Req) -> bool {
    let Some(id) = place_of(req) else {
        return true;
    };
    let Ok(peer) = core.links().peer(from) else {
        return false;
    };
    let withdrawn = core.transfers().withdraw(&peer, id);
    if withdrawn {
        end_place(req);
    }
    withdrawn
}
