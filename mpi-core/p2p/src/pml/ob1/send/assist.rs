//! The sender's side of a cooperative copy; the receiver's side is in [`single_copy`](super::super::recv).

use super::super::core::{Core, HandlerResult, ProtocolError};
use super::super::wire::{self, Assist};
use crate::btl::{Header, ProcId};
use crate::request::{Body, ReqId};

/// Handles ASSIST: the receiver is reading the data and asks the sender to copy a part.
pub fn on_assist(core: &Core, from: ProcId, header: Header, payload: &[u8]) -> HandlerResult {
    let (Some(help), Ok(peer)) = (Assist::decode(payload), core.links().peer(from)) else {
        return Err(ProtocolError("a malformed call for help with a copy"));
    };
    let Some(req) = core.requests().get(ReqId(header[0])) else {
        // The send may have been abandoned without notice to the receiver, which then copies everything itself.
        return core.late(header[0]);
    };
    let together = peer.btl().capabilities().single_copy;
    let together = together.and_then(|copy| copy.together());
    let put = match &*req.body.borrow() {
        Body::Send(send) if send.proc() == from && !req.is_complete() => {
            together.and_then(|together| {
                send.in_runs(help.wanted, |data| {
                    together.help(peer.endpoint(), help.number, data, help.place.regions())
                })
            })
        }
        _ => None,
    };
    let bytes = match put {
        Some(Ok(bytes)) => bytes as u64,
        Some(Err(_)) => 0,
        None => {
            core.protocol_error();
            return Ok(());
        }
    };
    // Zero bytes without an error: the receiver was faster and has claimed everything, so it does not wait for ASSIST_DONE.
    if bytes > 0 || matches!(put, Some(Err(_))) {
        let sender = header[0].to_le_bytes();
        core.links()
            .control(&peer, wire::ASSIST_DONE, [header[1], bytes], sender);
    }
    Ok(())
}
