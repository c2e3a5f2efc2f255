//! The receiver's replies to the sender of a matched message: FIN, CTS and EAGER_MODE.

use super::super::core::Core;
use super::super::peer::Peer;
use super::super::protocol_choice::Way;
use super::super::wire;
use crate::btl::ProcId;
use crate::request::{Body, Req, ReqId};
use std::rc::Rc;

/// Sends FIN: the receiver no longer accesses the sender's buffer.
pub fn finished(core: &Core, peer: &Rc<Peer>, sender: ReqId) {
    core.links().control(peer, wire::FIN, [sender.0, 0], [0; 8]);
}

/// Sends CTS: requests the first `wanted` bytes of the message in fragments.
pub fn ask_for_fragments(core: &Core, peer: &Rc<Peer>, sender: ReqId, req: &Req, wanted: u64) {
    let header = [sender.0, req.id().0];
    core.links()
        .control(peer, wire::CTS, header, wanted.to_le_bytes());
}

/// Sends FIN if the sender of this receive's message waits for it; the receiver needs no more data.
pub fn release_sender(core: &Core, req: &Req) {
    let waiting = match &mut *req.body.borrow_mut() {
        Body::Recv(recv) => recv
            .incoming_mut()
            .and_then(|incoming| Some((incoming.from(), incoming.take_sender()?))),
        _ => None,
    };
    if let Some((from, sender)) = waiting
        && let Ok(peer) = core.links().peer(from)
    {
        finished(core, &peer, sender);
    }
}

/// Handles a new measurement: data of `bytes` bytes have arrived by a timed protocol.
/// Sends EAGER_MODE to the sender if another mode is now faster for messages of this size class.
pub fn advise(core: &Core, from: ProcId, bytes: u64) {
    let Ok(peer) = core.links().peer(from) else {
        return;
    };
    let way = peer.chooser().better(bytes);
    let Some(way) = way.filter(|_| bytes <= wire::LONGEST_FOLLOWED) else {
        return;
    };
    if let Some(header) = peer.pipeline().advice(bytes, way == Way::Fragments) {
        core.links()
            .control(&peer, wire::EAGER_MODE, header, [0; 8]);
    }
}
