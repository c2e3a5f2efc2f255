//! Probes: finding messages without receiving them (MPI 5.0, section 3.8).

use super::matching::arrived::Arrived;
use super::matching::{Key, Matching};
use crate::request::Status;
use std::rc::Rc;

/// A message that `MPI_Mprobe` has removed from matching; only [`Pml::imrecv`](crate::pml::Pml::imrecv) can receive it.
pub struct Message {
    pub status: Status,
    key: Key,
    arrived: Arrived,
    matching: Rc<Matching>,
}

impl Message {
    /// Returns the key, the message data and the matching state, for the matched receive.
    pub(super) fn into_parts(self) -> (Key, Arrived, Rc<Matching>) {
        (self.key, self.arrived, self.matching)
    }
}

/// Returns the status of the earliest message that a receive with this key would match. The message is not removed.
#[inline]
pub(super) fn peek(matching: &Matching, key: Key) -> Option<Status> {
    let (key, bytes) = matching.peek_unexpected(key)?;
    Some(key.status(bytes))
}

/// Removes and returns the earliest message that a receive with this key would match.
pub(super) fn take(matching: &Rc<Matching>, key: Key) -> Option<Message> {
    let (key, arrived) = matching.take_unexpected(key)?;
    let status = key.status(arrived.content.bytes());
    Some(Message {
        status,
        key,
        arrived,
        matching: matching.clone(),
    })
}
