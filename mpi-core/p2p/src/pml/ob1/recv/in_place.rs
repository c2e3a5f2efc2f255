//! Delivery in place: the transport writes a long message from the sender's memory into the receive buffer.
//!
//! After the match the receiver posts its buffer under the ID of the receive, and requests the data by CTS with the flag [`wire::IN_PLACE`].
//! A sender that cannot deliver in place sends fragments instead; at the first fragment, the receiver withdraws its buffer.
//! A receive with a posted buffer completes only after the transfer has ended, because the transport may write to the buffer until then.

#![allow(unsafe_code)]

use super::super::core::Core;
use super::super::incoming::Incoming;
use super::super::peer::Peer;
use super::super::peer_failure::fail_if_lost;
use super::super::transfers::in_place;
use super::super::wire;
use super::fragments::count;
use super::place::end_place;
use crate::btl::{ProcId, Region};
use crate::request::{Body, Req, ReqId};
use std::rc::Rc;

/// Posts the buffer of a receive that expects `wanted` bytes, and requests the data.
/// Returns false if the message must be sent in fragments.
pub fn ask(
    core: &Core,
    (from, peer): (ProcId, &Rc<Peer>),
    sender: ReqId,
    req: &Req,
    wanted: u64,
) -> bool {
    let Some(id) = post(peer, req, wanted) else {
        return false;
    };
    core.transfers().list(req, (from, peer), id);
    let header = [sender.0, req.id().0];
    let payload = (wanted | wire::IN_PLACE).to_le_bytes();
    core.links().control(peer, wire::CTS, header, payload);
    true
}

fn post(peer: &Peer, req: &Req, wanted: u64) -> Option<u64> {
    let all = in_place(peer)?;
    // The sender of a transport that may request fragments again waits for FIN, which this protocol does not send.
    if wanted < all.shortest().max(1) as u64 || peer.is_fin_required() {
        return None;
    }
    let mut body = req.body.borrow_mut();
    let Body::Recv(recv) = &mut *body else {
        return None;
    };
    // Bytes for a device are copied to the device while later ones arrive, so they arrive in fragments.
    if recv.device().is_some() {
        return None;
    }
    let buffer = recv.contiguous()?.get_mut(..wanted as usize)?;
    let place = Region {
        address: buffer.as_mut_ptr().expose_provenance() as u64,
        len: wanted,
    };
    // SAFETY: the receive owns its buffer until it completes, which happens only after the end of the transfer; `abandon` ends the transfer first.
    let id = unsafe { all.post(peer.endpoint(), req.id().0, place) }?;
    recv.incoming_mut()?.set_place(id);
    Some(id)
}

/// Handles the end of the transfer of a receive.
///
/// After a failed transfer the receive expects fragments, because the transfer has also failed at the sender.
pub fn ended(core: &Core, from: ProcId, req: &Req, succeeded: bool) {
    end_place(req);
    let wanted = match &*req.body.borrow() {
        Body::Recv(recv) => recv.incoming().map(Incoming::wanted),
        _ => None,
    };
    match (wanted, succeeded) {
        (Some(wanted), true) => count(core, req, 0, wanted as usize),
        _ => {
            fail_if_lost(core, req, from);
        }
    }
}

/// Ends the transfer of an abandoned receive, so that the transport no longer writes to the buffer.
pub fn abandon(core: &Core, req: &Req) {
    let Some(from) = super::fragments::incoming_from(req) else {
        return;
    };
    if let Some(id) = end_place(req)
        && let Ok(peer) = core.links().peer(from)
    {
        core.transfers().give_up(&peer, id);
    }
}
