//! What tests of the protocols look at, which stand outside of this package because they need communicators.

use super::{Context, Ob1};
use crate::btl::ProcId;
use crate::datatype::SendBuf;

pub use super::eager_pipeline::{ASKING, LONGEST, ROUND};
pub use super::flow_control::{COST, LOOK};
pub use crate::trial::order_of;

impl Ob1 {
    /// The context of the latest message.
    pub fn latest_context(&self) -> Option<Context> {
        self.recent.borrow().as_ref().map(|m| m.context())
    }

    /// Whether anything was measured of messages of this length from a peer.
    pub fn has_measured(&self, peer: ProcId, bytes: u64) -> bool {
        self.peer(peer).is_ok_and(|peer| peer.pace.knows(bytes))
    }

    /// Up to which length messages to a peer travel unasked.
    pub fn eager_below(&self, peer: ProcId) -> usize {
        self.peer(peer).map_or(0, |peer| peer.eager_below.get())
    }

    /// Counts a message to a peer that is not short, and says whether it goes unasked.
    pub fn uses_eager_pipeline_to(&self, peer: ProcId, buf: &SendBuf) -> bool {
        self.peer(peer).is_ok_and(|peer| {
            peer.follow.count();
            self.eager_pipeline_fragment(&peer, buf).is_some()
        })
    }

    /// Whether nothing is waited for from a peer any more.
    pub fn counts_as_lost(&self, peer: ProcId) -> bool {
        self.is_lost(peer)
    }
}
