//! The receiver's state of a cooperative copy, in which each side copies a part.

use super::wire::Place;
use crate::btl::{Fetched, Region};
use crate::request::id::ReqId;

/// The state of a cooperative copy at the receiver.
pub(super) struct SharedCopy {
    sender: ReqId,
    /// The transport's ID of the cooperative copy.
    number: u32,
    /// The addresses of the data in the sender's memory.
    remote: Place,
    /// The number of bytes that the receiver has copied.
    ours: u64,
    /// The number of bytes that the sender has copied; `None` until it reports completion (ASSIST_DONE).
    theirs: Option<u64>,
    /// True if some bytes may still be unclaimed.
    open: bool,
    failed: bool,
}

impl SharedCopy {
    /// Creates the state of a cooperative copy of which no bytes have been copied.
    pub(super) fn new(sender: ReqId, number: u32, remote: Place) -> SharedCopy {
        SharedCopy {
            sender,
            number,
            remote,
            ours: 0,
            theirs: None,
            open: true,
            failed: false,
        }
    }

    pub(super) fn sender(&self) -> ReqId {
        self.sender
    }

    pub(super) fn number(&self) -> u32 {
        self.number
    }

    pub(super) fn remote(&self) -> &[Region] {
        self.remote.regions()
    }

    /// Returns true if some bytes may still be unclaimed.
    pub(super) fn is_open(&self) -> bool {
        self.open
    }

    /// Adds a part that the receiver has copied.
    pub(super) fn add(&mut self, fetched: Fetched) {
        self.ours += fetched.bytes as u64;
        self.open = fetched.open;
        self.failed |= fetched.result.is_err();
    }

    /// Records that the sender has completed its part and has copied `bytes` bytes.
    /// The sender leaves no bytes unclaimed unless its copy has failed, and after a failure no more bytes may be copied.
    pub(super) fn sender_ends(&mut self, bytes: u64) {
        self.open = false;
        self.theirs = Some(bytes);
    }

    /// Returns true if the sender has claimed no bytes: `left` of `wanted` bytes were unclaimed when the copy was closed.
    pub(super) fn is_ours_alone(&self, left: u64, wanted: u64) -> bool {
        self.ours + left == wanted
    }

    /// Returns `None` while either side may still copy, then whether all `wanted` bytes have been copied.
    pub(super) fn outcome(&self, wanted: u64) -> Option<bool> {
        let through = !self.open && (self.ours == wanted || self.theirs.is_some());
        let sum = self.ours.checked_add(self.theirs.unwrap_or(0));
        through.then(|| !self.failed && sum == Some(wanted))
    }
}
