//! The announcement of a message by rendezvous.

use super::super::core::Core;
use super::super::exposure::Exposure;
use super::super::peer::Peer;
use super::super::wire::{self, Place, Rendezvous};
use super::device_twin;
use crate::btl::{Payload, ProcId, SendError};
use crate::request::{Body, Req};
use std::rc::Rc;

/// Announces a message; its data wait for CTS or FIN of the receiver.
pub fn announce(core: &Core, peer: &Rc<Peer>, req: &Req) -> Result<(), SendError> {
    expose(peer, req);
    let body = req.body.borrow();
    let Body::Send(send) = &*body else {
        return Ok(());
    };
    if let Some(key) = send.key() {
        let payload = Rendezvous::with_key(send.bytes(), req.id(), key);
        peer.send(wire::RNDV_KEY, send.header(), Payload::Bytes(&payload))?;
        peer.copying().announces();
        return Ok(());
    }
    let device = device_twin(send.buf());
    let rendezvous = Rendezvous {
        key: None,
        bytes: send.bytes(),
        sender: req.id(),
        place: match peer.copying().is_single_possible() && device.is_none() {
            true => send.place(peer.limits().max_send),
            false => Place::Scattered,
        },
    };
    rendezvous.encoded(|payload| peer.send(wire::RNDV, send.header(), Payload::Bytes(payload)))?;
    if let Some(device) = device {
        // The receiver will request fragments, so their copies from the device start already.
        device.begin();
    }
    core.counts().sends_rendezvous();
    if let Some(observer) = core.observer() {
        core.counts().announces_observed();
        observer.rendezvous(send.envelope(), send.bytes(), true);
    }
    peer.copying().announces();
    peer.pipeline().count();
    Ok(())
}

/// Reports to the observer that the data of an announced message have been sent or read by the receiver.
pub fn released(core: &Core, req: &Req) {
    if let Some(observer) = core.observer()
        && let Body::Send(send) = &*req.body.borrow()
        // A message of the eager pipeline does not wait for the receiver, so it is not reported as a rendezvous.
        && send.stream().is_none_or(|stream| stream.am() == wire::FRAG)
    {
        observer.rendezvous(send.envelope(), send.bytes(), false);
    }
}

/// Registers the data of a send for remote reads, if the transport supports them and the data are not registered yet.
fn expose(peer: &Peer, req: &Req) {
    if peer.btl().capabilities().remote_memory.is_none() {
        return;
    }
    if let Body::Send(send) = &mut *req.body.borrow_mut()
        && send.key().is_none()
    {
        let data = send.buf().contiguous();
        let exposure = data.and_then(|data| Exposure::of(peer.shared_btl(), data));
        send.expose(exposure);
    }
}

/// Ends the registration of a send's data.
pub fn withdraw(req: &Req) {
    if let Body::Send(send) = &mut *req.body.borrow_mut() {
        send.expose(None);
    }
}

/// Records that a message announced to a peer was answered or cancelled.
pub fn answered(core: &Core, from: ProcId) {
    if let Ok(peer) = core.links().peer(from) {
        peer.copying().was_answered();
    }
}
