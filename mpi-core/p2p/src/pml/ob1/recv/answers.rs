//! The receiver's answers to the sender of a matched message.

use super::super::core::Core;
use super::super::peer::Peer;
use super::super::protocol_choice::Way;
use super::super::wire;
use crate::btl::ProcId;
use crate::request::{Body, Req, ReqId};
use std::rc::Rc;

/// Sends FIN: the sender's buffer is no longer accessed.
pub fn finished(core: &Core, peer: &Rc<Peer>, sender: ReqId) {
    core.links().control(peer, wire::FIN, [sender.0, 0], [0; 8]);
}

/// Sends CTS: requests `wanted` bytes in fragments.
pub fn ask_for_fragments(core: &Core, peer: &Rc<Peer>, sender: ReqId, req: &Req, wanted: u64) {
    let header = [sender.0, req.id().0];
    core.links()
        .control(peer, wire::CTS, header, wanted.to_le_bytes());
}

/// Sends FIN to a sender that waits for this receive, because the receiver wants no more of its data.
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

/// Called after data of this length have arrived by the timed protocol:
/// sends EAGER_MODE to the sender if the measurements now favour another protocol for such messages.
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
