//! The eager pipeline: messages of medium length whose data follow the announcement without a CTS.
//!
//! If fragments are the faster protocol, a rendezvous doubles the time of a message of medium length:
//! the announcement must arrive and the CTS return before the first fragment is sent.
//! So a receiver whose measurements ([`protocol_choice`](super::super::protocol_choice)) favour
//! fragments for messages of a size class notifies their sender ([`wire::EAGER_MODE`]).
//! The sender then announces such messages with [`wire::EAGER_START`] and sends their data at once, in fragments ([`wire::EAGER_FRAG`]) that name the announcement.
//! Both sides copy neighbouring fragments concurrently, and the send is complete when the transport has accepted the last one.
//!
//! The announcement is matched like any other, so order is kept.
//! If the receive is posted, the fragments are copied into its buffer; otherwise they are buffered
//! and charged like short unexpected messages ([`flow_control`](super::super::flow_control)).
//! A receive that is posted meanwhile takes over the data received so far and gets the rest.
//!
//! A message that fits in one fragment is sent like a short message, together with its announcement ([`wire::EAGER_LONG`]).
//!
//! Periodically, a few messages use rendezvous again, so that the receiver continues to measure; the result may end the pipeline.
//! If fragments are the only possible protocol, no message uses rendezvous again. The same holds
//! for data in more contiguous segments than an announcement can list.
//!
//! This is the receiver's part; the sender's is in [`pipeline`](super::super::send::pipeline).

use super::super::core::{Core, HandlerResult, ProtocolError};
use super::super::flow_control::UnexpectedMemory;
use super::super::incoming::Incoming;
use super::super::matching::Key;
use super::super::matching::arrived::{Arrived, Content, Kept};
use super::super::peer::pipeline::Destination;
use super::super::peer_failure::fail_if_lost;
use super::super::wire::{LONGEST_FOLLOWED, Rendezvous};
use super::fragments::count;
use super::meeting::meet;
use crate::btl::{Header, ProcId};
use crate::request::{Body, Req, ReqId};
use std::rc::Rc;

/// Invalidates the current measurements,
/// since concurrent transfers had to wait for a long eager message.
pub fn disturb(core: &Core, from: ProcId) {
    if let Ok(peer) = core.links().peer(from) {
        peer.chooser().disturb();
    }
}

/// Handles the announcement of a message whose data follow without a request.
pub fn on_start(core: &Core, from: ProcId, payload: &[u8]) -> Result<Arrived, ProtocolError> {
    let (Some(announced), Ok(peer)) = (Rendezvous::decode(payload), core.links().peer(from)) else {
        return Err(ProtocolError("a malformed announcement"));
    };
    if announced.bytes == 0 || announced.bytes > LONGEST_FOLLOWED {
        return Err(ProtocolError("an announcement of an impossible length"));
    }
    let kept = Rc::new(Kept::new(announced.sender, announced.bytes));
    peer.pipeline().expect(kept.clone());
    let content = Content::Followed(kept);
    Ok(Arrived::new(from, content))
}

/// Gives a message of the eager pipeline to its receive.
pub fn accept(
    core: &Core,
    memory: &UnexpectedMemory,
    req: &Req,
    key: Key,
    from: ProcId,
    kept: &Kept,
) {
    let Some((wanted, too_long)) = meet(core, req, key, kept.bytes()) else {
        return core.protocol_error();
    };
    let come = kept.take();
    let here = match &mut *req.body.borrow_mut() {
        Body::Recv(recv) => {
            recv.expect(Incoming::new(from, wanted, too_long));
            recv.put(0, &come)
        }
        _ => 0,
    };
    memory.give(come);
    if let Ok(peer) = core.links().peer(from) {
        peer.pipeline().redirect(kept.sender(), req.id());
    }
    count(core, req, here);
    fail_if_lost(core, req, from);
}

/// Handles a fragment of a message.
pub fn on_frag(
    core: &Core,
    memory: &UnexpectedMemory,
    from: ProcId,
    header: Header,
    payload: &[u8],
) -> HandlerResult {
    let place = core.links().peer(from).ok().and_then(|peer| {
        peer.chooser().disturb();
        peer.pipeline().place(header, payload.len() as u64)
    });
    match place {
        Some(Destination::Receive(receive)) => put(core, receive, header[1], payload),
        Some(Destination::Kept(kept)) => kept.append(payload, |len| memory.take(len)),
        None => return Err(ProtocolError("data that belong to no message of its own")),
    }
    Ok(())
}

/// Copies a fragment into its receive, unless the receive was abandoned or has been filled.
fn put(core: &Core, receive: ReqId, offset: u64, payload: &[u8]) {
    let req = core.requests().get(receive);
    let Some(req) = req.filter(|req| !req.is_complete()) else {
        return;
    };
    let put = match &mut *req.body.borrow_mut() {
        Body::Recv(recv) => recv.put(offset, payload),
        _ => 0,
    };
    count(core, &req, put);
}
