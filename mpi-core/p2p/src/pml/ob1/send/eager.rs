//! Eager messages, sent as a whole with their announcement.

use super::super::core::Core;
use super::super::peer::Peer;
use super::super::wire;
use super::pipeline;
use super::range::send_range;
use crate::btl::SendError;
use crate::datatype::SendBuf;
use crate::pml::envelope::{Envelope, Mode};

/// Up to this length a message is always sent eagerly, because programs rely on short messages being sent without a receive.
const BRIEF: usize = 4 << 10;
/// Up to this length an eager message is sent in one piece; both sides copy longer messages concurrently.
const WHOLE: usize = 32 << 10;
/// Packing this number of contiguous segments takes longer than announcing them. After the
/// announcement, the receiver can begin with the first fragment.
const LABORIOUS_RUNS: i64 = 256;

/// Returns true if the data are sent with the announcement.
#[inline]
pub fn is_eager(core: &Core, peer: &Peer, mode: Mode, buf: &SendBuf) -> bool {
    let bytes = buf.bytes() as usize;
    if mode != Mode::Standard {
        false
    } else if bytes < peer.credit().eager_below() {
        // If packing takes long, a rendezvous is faster: the receiver unpacks the first fragment while the sender packs the next one.
        bytes <= BRIEF || !peer.copying().is_single_possible() || buf.run_count() < LABORIOUS_RUNS
    } else {
        // The message fits into one fragment, and packing a few long segments takes no longer than
        // an announcement would.
        bytes <= WHOLE.min(peer.limits().max_send)
            && buf.is_in_runs()
            && pipeline::fragment(core, peer, buf).is_some()
    }
}

/// Passes an eager message to the transport.
#[inline]
pub fn send_eager(peer: &Peer, envelope: &Envelope, buf: &SendBuf) -> Result<(), SendError> {
    let header = wire::match_header(envelope.context, envelope.source, envelope.tag);
    let bytes = buf.bytes() as usize;
    if bytes <= peer.limits().eager {
        return send_range(peer, wire::EAGER, header, buf, 0, bytes);
    }
    peer.pipeline().count();
    send_range(peer, wire::EAGER_LONG, header, buf, 0, bytes)
}
