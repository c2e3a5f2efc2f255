//! A copy of which both sides do a part, as the receiver keeps count of it.

use super::wire::Place;
use crate::btl::{Fetched, Region};
use crate::request::id::ReqId;

/// A copy that both sides work on, at the receiver's end.
pub(super) struct SharedCopy {
    sender: ReqId,
    /// The transport's number of it.
    number: u32,
    /// Where the data lie in the sender's memory.
    remote: Place,
    /// Bytes that we have taken upon ourselves.
    ours: u64,
    /// Bytes that the sender says it has put.
    theirs: Option<u64>,
    /// Whether there may be something left to take.
    open: bool,
    failed: bool,
}

impl SharedCopy {
    /// One of which neither side has done anything yet.
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

    /// Whether there may be something left to take.
    pub(super) fn is_open(&self) -> bool {
        self.open
    }

    /// The receiver has taken so much.
    pub(super) fn add(&mut self, fetched: Fetched) {
        self.ours += fetched.bytes as u64;
        self.open = fetched.open;
        self.failed |= fetched.result.is_err();
    }

    /// The sender has put so many bytes.
    /// It leaves nothing unless it has failed, and then nothing more is to be copied.
    pub(super) fn sender_ends(&mut self, bytes: u64) {
        self.open = false;
        self.theirs = Some(bytes);
    }

    /// Whether the sender has taken nothing of `wanted` bytes upon itself, if so many were `left` when the copy was closed.
    pub(super) fn is_ours_alone(&self, left: u64, wanted: u64) -> bool {
        self.ours + left == wanted
    }

    /// Whether all of `wanted` bytes are there, once neither side works on it any more.
    pub(super) fn outcome(&self, wanted: u64) -> Option<bool> {
        let through = !self.open && (self.ours == wanted || self.theirs.is_some());
        let sum = self.ours.checked_add(self.theirs.unwrap_or(0));
        through.then(|| !self.failed && sum == Some(wanted))
    }
}
