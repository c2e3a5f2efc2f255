//! The boards that a hub can serve, with the operations of the protocol: a file for each version.

mod channels;
mod toggle;

pub(super) use channels::{Channels, OUTWARD, SELECT};
pub(super) use toggle::Toggle;

use super::frame::{Eureka, Request};
use crate::live::{ChannelLook, Snapshot};
use std::fmt::Debug;
use std::time::Duration;

/// A board of either version.
pub(super) trait Board: Debug + Send {
    /// Returns the version of the protocol that serves this board.
    fn version(&self) -> u8;

    fn nodes(&self) -> usize;

    /// Returns the present state of the board, as this node or (`None`) an observer sees it; see [`frame`](super::frame) for the meaning of the words.
    fn snapshot(&mut self, node: Option<usize>, now: Duration) -> Snapshot;

    fn releases(&self) -> u64;

    /// Performs a node's write.
    fn write(&mut self, node: usize, request: Request, now: Duration) -> Written;

    /// Makes a dead node's lines idle: this releases no node, because a line that equals its barrier's level is no arrival.
    fn rest(&mut self, node: usize, now: Duration) -> Rested;

    /// Returns the eureka line now, if there is one.
    fn eureka(&self) -> Option<Eureka> {
        None
    }

    /// Returns a channel now; `None` for a board of version 1, which has no channels.
    fn channel(&mut self, _channel: usize, _now: Duration) -> Option<ChannelLook> {
        None
    }

    /// Returns the node that is sending over its serial lines.
    fn speaker(&self) -> Option<usize> {
        None
    }

    /// Ends the unfinished session of a node that disconnects.
    fn release_lines(&mut self, _node: usize, _now: Duration) {}
}

/// The result of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    /// The wires have their levels; `released` is true if that has released a node.
    Done { released: bool },
    /// Another node is sending; the write has to wait until it has ended.
    NotYet,
    /// The request is not for this kind of board.
    Foreign,
}

/// The state of a dead node when its lines were made idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rested {
    /// True if the node had entered a barrier that was not yet released.
    pub inside: bool,
    /// The level of the node's wire now; `None` if it has several lines (version 2).
    pub level: Option<bool>,
}

/// Returns the time as the board's nanoseconds.
fn nanoseconds(now: Duration) -> u64 {
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}
