//! What a receiver says to the sender of a message that its receive has met.

use super::super::core::Core;
use super::super::peer::Peer;
use super::super::protocol_choice::Way;
use super::super::wire;
use crate::btl::ProcId;
use crate::request::{Body, Req, ReqId};
use std::rc::Rc;

/// The sender's memory is its own again.
pub fn finished(core: &Core, peer: &Rc<Peer>, sender: ReqId) {
    core.links().control(peer, wire::FIN, [sender.0, 0], [0; 8]);
}

/// Asks for `wanted` bytes in fragments.
pub fn ask_for_fragments(core: &Core, peer: &Rc<Peer>, sender: ReqId, req: &Req, wanted: u64) {
    let header = [sender.0, req.id().0];
    core.links()
        .control(peer, wire::CTS, header, wanted.to_le_bytes());
}

/// Tells a send that waits for it that nothing of it is wanted any more.
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

/// The data of a message of this length have come the way that was measured:
/// tells its sender whether data of such messages are to follow their announcement, when what was measured has changed.
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
