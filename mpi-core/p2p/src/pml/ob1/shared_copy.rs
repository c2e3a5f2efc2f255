//! The receiver's state of a cooperative copy, in which each side copies a part.

use super::wire::Place;
use crate::btl::{Fetched, Region};
use crate::request::id::ReqId;

/// A cooperative copy at the receiver.
pub(super) struct SharedCopy {
    sender: ReqId,
    /// The transport's ID of the copy.
    number: u32,
    /// The addresses of the data in the sender's memory.
    remote: Place,
    /// The bytes copied by the receiver.
    ours: u64,
    /// The bytes that the sender has reported as copied.
    theirs: Option<u64>,
    /// Whether uncopied bytes may be left.
    open: bool,
    failed: bool,
}

impl SharedCopy {
    /// Creates a copy that has not copied any bytes yet.
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

    /// Returns true if uncopied bytes may be left.
    pub(super) fn is_open(&self) -> bool {
        self.open
    }

    /// Adds the bytes that the receiver has fetched.
    pub(super) fn add(&mut self, fetched: Fetched) {
        self.ours += fetched.bytes as u64;
        self.open = fetched.open;
        self.failed |= fetched.result.is_err();
    }

    /// Records the sender's report that it has copied `bytes` bytes.
    /// The sender leaves no bytes uncopied unless it has failed; after a failure no more bytes may be copied.
    pub(super) fn sender_ends(&mut self, bytes: u64) {
        self.open = false;
        self.theirs = Some(bytes);
    }

    /// Returns true if the sender has claimed none of `wanted` bytes, given that `left` bytes were unclaimed when the copy was closed.
    pub(super) fn is_ours_alone(&self, left: u64, wanted: u64) -> bool {
        self.ours + left == wanted
    }

    /// Returns whether all of `wanted` bytes have arrived, once neither side works on the copy any more.
    pub(super) fn outcome(&self, wanted: u64) -> Option<bool> {
        let through = !self.open && (self.ours == wanted || self.theirs.is_some());
        let sum = self.ours.checked_add(self.theirs.unwrap_or(0));
        through.then(|| !self.failed && sum == Some(wanted))
    }
}
