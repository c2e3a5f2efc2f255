//! Announcement of a message by rendezvous.

use super::super::core::Core;
use super::super::peer::Peer;
use super::super::wire::{self, Place, Rendezvous};
use crate::btl::{Payload, ProcId, SendError};
use crate::request::{Body, Req};

/// Announces a message; its data wait for the receiver's answer.
pub fn announce(core: &Core, peer: &Peer, req: &Req) -> Result<(), SendError> {
    let body = req.body.borrow();
    let Body::Send(send) = &*body else {
        return Ok(());
    };
    let rendezvous = Rendezvous {
        bytes: send.bytes(),
        sender: req.id(),
        place: match peer.copying().is_single_possible() {
            true => send.place(peer.limits().max_send),
            false => Place::Scattered,
        },
    };
    rendezvous.encoded(|payload| peer.send(wire::RNDV, send.header(), Payload::Bytes(payload)))?;
    core.counts().sends_rendezvous();
    if let Some(observer) = core.observer() {
        core.counts().announces_observed();
        observer.rendezvous(send.envelope(), send.bytes(), true);
    }
    peer.copying().announces();
    peer.pipeline().count();
    Ok(())
}

/// Shows the observer that the receiver has released an announced message.
pub fn released(core: &Core, req: &Req) {
    if let Some(observer) = core.observer()
        && let Body::Send(send) = &*req.body.borrow()
        // The eager pipeline needs no answer before its data.
        && send.stream().is_none_or(|stream| stream.am() == wire::FRAG)
    {
        observer.rendezvous(send.envelope(), send.bytes(), false);
    }
}

/// Notes that a message announced to a peer no longer waits for an answer.
pub fn answered(core: &Core, from: ProcId) {
    if let Ok(peer) = core.links().peer(from) {
        peer.copying().was_answered();
    }
}
