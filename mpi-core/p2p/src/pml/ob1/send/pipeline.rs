//! The sender's side of the eager pipeline: selects the messages that use the pipeline, and starts to send them.
//!
//! The receiver's side, [`eager_pipeline`](super::super::recv::eager_pipeline), describes the protocol.

use super::super::core::{Core, HandlerResult, ProtocolError};
use super::super::peer::Peer;
use super::super::stream::Stream;
use super::super::wire::{self, LONGEST_FOLLOWED, Place, Rendezvous};
use super::streams::Streams;
use crate::btl::{Header, Payload, ProcId, SendError};
use crate::datatype::SendBuf;
use crate::pml::envelope::Mode;
use crate::request::{Body, Req};
use std::rc::Rc;

/// Returns the maximum fragment length in bytes if a message above the eager limit uses the eager pipeline,
/// and `None` if the message uses rendezvous.
#[cold]
pub fn fragment(core: &Core, peer: &Peer, buf: &SendBuf) -> Option<usize> {
    let bytes = buf.bytes() as u64;
    if bytes > LONGEST_FOLLOWED || peer.credit().is_withdrawn() {
        return None;
    }
    let packed = !buf.is_in_runs();
    let piece = peer.eager_fragment(bytes, packed)?;
    // If the receiver cannot read the data in a single copy, fragments are the only protocol, and no measurement is needed.
    let no_choice =
        !peer.copying().is_single_possible() || bytes < core.config().single_copy_min || packed;
    (no_choice || peer.pipeline().is_wanted(bytes)).then_some(piece)
}

/// If the message uses the eager pipeline, announces it and sends as much of its data as the transport accepts. Otherwise returns `None`.
pub fn send(
    core: &Core,
    streams: &Streams,
    peer: &Rc<Peer>,
    req: &Req,
) -> Option<Result<(), SendError>> {
    let mut body = req.body.borrow_mut();
    let Body::Send(send) = &mut *body else {
        return None;
    };
    if send.mode() != Mode::Standard {
        return None;
    }
    let piece = fragment(core, peer, send.buf())?;
    let bytes = send.bytes();
    // The queue need not be empty here: the message may be the first of the queue, and then overtakes no other message.
    peer.credit().spend(bytes as usize);
    let announcement = Rendezvous {
        key: None,
        bytes,
        sender: req.id(),
        place: Place::Scattered,
    };
    let announced = announcement
        .encoded(|payload| peer.send(wire::EAGER_START, send.header(), Payload::Bytes(payload)));
    if announced.is_err() {
        return Some(announced);
    }
    peer.pipeline().count();
    send.begin(Stream::new(wire::EAGER_FRAG, req.id(), bytes, piece));
    drop(body);
    streams.flow(core, peer, req);
    Some(Ok(()))
}

/// Handles EAGER_MODE: stores whether the peer requests the eager pipeline for a size class.
pub fn on_mode(core: &Core, from: ProcId, header: Header) -> HandlerResult {
    let (Ok(peer), [order @ 0..16, follow @ 0..=1]) = (core.links().peer(from), header) else {
        return Err(ProtocolError("an impossible wish for data"));
    };
    peer.pipeline().set_wanted(order, follow == 1);
    Ok(())
}
