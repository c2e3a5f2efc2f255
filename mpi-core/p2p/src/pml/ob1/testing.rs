//! What tests of the protocols look at, which stand outside of this package because they need communicators.

use super::Ob1;
use super::send::pipeline;
use crate::btl::ProcId;
use crate::datatype::SendBuf;
use crate::pml::envelope::Context;

impl Ob1 {
    /// The context of the latest message.
    pub fn latest_context(&self) -> Option<Context> {
        self.receiver.matcher().latest_context()
    }

    /// Whether anything was measured of messages of this length from a peer.
    pub fn has_measured(&self, peer: ProcId, bytes: u64) -> bool {
        (self.core.links().peer(peer)).is_ok_and(|peer| peer.chooser().knows(bytes))
    }

    /// Up to which length messages to a peer travel unasked.
    pub fn eager_below(&self, peer: ProcId) -> usize {
        (self.core.links().peer(peer)).map_or(0, |peer| peer.credit().eager_below())
    }

    /// Counts a message to a peer that is not short, and says whether it goes unasked.
    pub fn uses_eager_pipeline_to(&self, peer: ProcId, buf: &SendBuf) -> bool {
        (self.core.links().peer(peer)).is_ok_and(|peer| {
            peer.pipeline().count();
            pipeline::fragment(&self.core, &peer, buf).is_some()
        })
    }

    /// Whether nothing is waited for from a peer any more.
    pub fn counts_as_lost(&self, peer: ProcId) -> bool {
        self.core.losses().has(peer)
    }
}
