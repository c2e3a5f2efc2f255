//! Internals of `ob1` for tests of the protocols; these tests need communicators and therefore are in other packages.

use super::Ob1;
use super::send::pipeline;
use crate::btl::ProcId;
use crate::datatype::SendBuf;
use crate::pml::envelope::Context;

impl Ob1 {
    /// Returns the context of the message that arrived last.
    pub fn latest_context(&self) -> Option<Context> {
        self.receiver.matcher().latest_context()
    }

    /// Returns true if the protocols for messages of `bytes` bytes from a peer have been measured.
    pub fn has_measured(&self, peer: ProcId, bytes: u64) -> bool {
        (self.core.links().peer(peer)).is_ok_and(|peer| peer.chooser().knows(bytes))
    }

    /// Returns the length in bytes below which messages to a peer are sent eagerly.
    pub fn eager_below(&self, peer: ProcId) -> usize {
        (self.core.links().peer(peer)).map_or(0, |peer| peer.credit().eager_below())
    }

    /// Counts a message to a peer above the eager limit. Returns true if the message would use the eager pipeline.
    pub fn uses_eager_pipeline_to(&self, peer: ProcId, buf: &SendBuf) -> bool {
        (self.core.links().peer(peer)).is_ok_and(|peer| {
            peer.pipeline().count();
            pipeline::fragment(&self.core, &peer, buf).is_some()
        })
    }

    /// Returns true if the peer is lost.
    pub fn counts_as_lost(&self, peer: ProcId) -> bool {
        self.core.losses().has(peer)
    }
}
