//! Looking at messages before receiving them (MPI 5.0, section 3.8).

use super::matching::arrived::Arrived;
use super::matching::{Key, Matching};
use crate::request::Status;
use std::rc::Rc;

/// A message taken out of matching by `MPI_Mprobe`; only [`Pml::imrecv`](crate::pml::Pml::imrecv) can receive it.
pub struct Message {
    pub status: Status,
    key: Key,
    arrived: Arrived,
    matching: Rc<Matching>,
}

impl Message {
    /// What its receive is made of.
    pub(super) fn into_parts(self) -> (Key, Arrived, Rc<Matching>) {
        (self.key, self.arrived, self.matching)
    }
}

/// The earliest message that a receive with this key would take, left where it is.
pub(super) fn peek(matching: &Matching, key: Key) -> Option<Status> {
    let (key, bytes) = matching.peek_unexpected(key)?;
    Some(key.status(bytes))
}

/// Takes the earliest message that a receive with this key would take.
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
