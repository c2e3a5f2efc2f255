//! Messages that travel without being asked for, whole.

use super::super::core::Core;
use super::super::peer::Peer;
use super::super::wire;
use super::pipeline;
use super::range::send_range;
use crate::btl::SendError;
use crate::datatype::SendBuf;
use crate::pml::envelope::{Envelope, Mode};

/// Up to here a message is never asked for, because programs count on a short one's being sent without its receive.
const BRIEF: usize = 4 << 10;
/// Up to here a message that goes unasked goes in one piece; longer ones are worked on by both sides at once.
const WHOLE: usize = 32 << 10;
/// Packing so many runs takes longer than announcing them, so that the receiver can begin with the first fragment.
const LABORIOUS_RUNS: i64 = 256;

/// Whether the data go with the announcement.
#[inline]
pub fn is_eager(core: &Core, peer: &Peer, mode: Mode, buf: &SendBuf) -> bool {
    let bytes = buf.bytes() as usize;
    if mode != Mode::Standard {
        false
    } else if bytes < peer.credit().eager_below() {
        // Where packing takes long, it pays to have the receiver unpack the first fragment meanwhile.
        bytes <= BRIEF || !peer.copying().is_single_possible() || buf.run_count() < LABORIOUS_RUNS
    } else {
        // One fragment holds it, and making that of a few long runs takes no longer than announcing it would.
        bytes <= WHOLE.min(peer.limits().max_send)
            && buf.is_in_runs()
            && pipeline::fragment(core, peer, buf).is_some()
    }
}

/// Hands such a message to the transport.
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
