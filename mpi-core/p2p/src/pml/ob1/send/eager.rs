//! Eager messages: data and envelope are sent together, without waiting for a receive.

use super::super::core::Core;
use super::super::peer::Peer;
use super::super::wire;
use super::pipeline;
use super::range::send_range;
use crate::btl::SendError;
use crate::datatype::SendBuf;
use crate::pml::envelope::{Envelope, Mode};

/// The maximum length in bytes of a message that is always sent eagerly: programs assume that a short message is sent without a posted receive.
const BRIEF: usize = 4 << 10;
/// The maximum length in bytes of an eager message above the eager limit.
/// Longer messages are sent in fragments, which both sides copy concurrently.
const WHOLE: usize = 32 << 10;
/// From this number of contiguous segments, packing a message takes longer than announcing it. After the
/// announcement, the receiver can unpack the first fragment while the sender packs the next one.
const LABORIOUS_RUNS: i64 = 256;

/// Returns true if the message is sent eagerly, as a whole.
#[inline]
pub fn is_eager(core: &Core, peer: &Peer, mode: Mode, buf: &SendBuf) -> bool {
    let bytes = buf.bytes() as usize;
    if mode != Mode::Standard {
        false
    } else if bytes < peer.credit().eager_below() {
        // A message that takes long to pack uses rendezvous: the receiver unpacks the first fragment while the sender packs the next one.
        bytes <= BRIEF || !peer.copying().is_single_possible() || buf.run_count() < LABORIOUS_RUNS
    } else {
        // The message fits into one fragment, and packing its few long segments takes no longer than
        // an announcement.
        bytes <= WHOLE.min(peer.limits().max_send)
            && buf.is_in_runs()
            && pipeline::fragment(core, peer, buf).is_some()
    }
}

/// Passes a whole eager message to the transport.
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
