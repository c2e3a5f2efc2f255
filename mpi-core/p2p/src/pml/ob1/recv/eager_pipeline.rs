//! The receiver's side of the eager pipeline: messages of medium length whose data follow the announcement without a CTS.
//!
//! If fragments are the faster protocol, a rendezvous doubles the transfer time of a message of medium length:
//! the announcement must arrive and the CTS return before the first fragment is sent.
//! So a receiver whose measurements ([`protocol_choice`](super::super::protocol_choice)) favour
//! fragments for messages of a size class requests the pipeline for this class from the sender ([`wire::EAGER_MODE`]).
//! The sender then announces such messages with [`wire::EAGER_START`] and immediately sends their data, in fragments ([`wire::EAGER_FRAG`]) that refer to the announcement.
//! Both sides copy consecutive fragments concurrently, and the send is complete when the transport has accepted the last fragment.
//!
//! The announcement is matched like any other message, so the order is preserved.
//! If a receive is posted, the fragments are copied into its buffer. Otherwise they are buffered
//! and counted like short unexpected messages ([`flow_control`](super::super::flow_control)).
//! A receive that is posted after the first fragments takes over the buffered data; the remaining fragments are copied into its buffer.
//!
//! A message that fits into one fragment is sent as one message with its envelope, like a short message ([`wire::EAGER_LONG`]).
//!
//! Periodically, some messages use rendezvous again, so that the receiver continues to measure. The result may disable the pipeline.
//! If fragments are the only possible protocol, all messages use the pipeline. This also holds
//! for data with more contiguous segments than an announcement can list.
//!
//! The sender's side is [`pipeline`](super::super::send::pipeline).

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

/// Invalidates the current measurements of the protocols,
/// because concurrent transfers had to wait for a long eager message.
pub fn disturb(core: &Core, from: ProcId) {
    if let Ok(peer) = core.links().peer(from) {
        peer.chooser().disturb();
    }
}

/// Handles EAGER_START: the announcement of a message whose data follow without a CTS.
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

/// Assigns a message of the eager pipeline to its receive: copies the buffered data, and directs later fragments to it.
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
    count(core, req, 0, here);
    fail_if_lost(core, req, from);
}

/// Handles EAGER_FRAG, the next fragment of an announced message.
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

/// Copies a fragment into the buffer of its receive, unless the receive was abandoned or is complete.
fn put(core: &Core, receive: ReqId, offset: u64, payload: &[u8]) {
    let req = core.requests().get(receive);
    let Some(req) = req.filter(|req| !req.is_complete()) else {
        return;
    };
    let put = match &mut *req.body.borrow_mut() {
        Body::Recv(recv) => recv.put(offset, payload),
        _ => 0,
    };
    count(core, &req, offset, put);
}
