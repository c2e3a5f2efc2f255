//! Announcement of a message by rendezvous.

use super::super::core::Core;
use super::super::peer::Peer;
use super::super::wire::{self, Place, Rendezvous};
use crate::btl::{Payload, ProcId, SendError};
use crate::request::{Body, Req};

/// Announces a message; its data wait for the receiver's answer.
pub fn announce(peer: &Peer, req: &Req) -> Result<(), SendError> {
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
    peer.copying().announces();
    peer.pipeline().count();
    Ok(())
}

/// Notes that a message announced to a peer no longer waits for an answer.
pub fn answered(core: &Core, from: ProcId) {
    if let Ok(peer) = core.links().peer(from) {
        peer.copying().was_answered();
    }
}
