//! Request IDs. They are sent to peers, and may be stale when a peer sends them back.

/// A request ID: the index is in the low half, the generation in the high half.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReqId(pub u64);

impl ReqId {
    pub(super) fn new(index: u32, generation: u32) -> ReqId {
        ReqId(u64::from(generation) << 32 | u64::from(index))
    }
    pub fn index(self) -> usize {
        self.0 as u32 as usize
    }
    pub(super) fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }
}
