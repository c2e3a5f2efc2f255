//! The boards that a hub can serve: [`Board`] is the interface, with one file per version.

mod channels;
mod toggle;

pub(super) use channels::{Channels, OUTWARD, SELECT};
pub(super) use toggle::Toggle;

use super::frame::{Eureka, Request};
use crate::live::{ChannelLook, Snapshot};
use std::fmt::Debug;
use std::time::Duration;

/// The operations of a board of either version that the protocol needs.
pub(super) trait Board: Debug + Send {
    /// Returns the version of the protocol that serves this board.
    fn version(&self) -> u8;

    fn nodes(&self) -> usize;

    /// Returns the present state of the board, as this node or (`None`) an observer sees it.
    /// The meaning of the words is in [`frame`](super::frame).
    fn snapshot(&mut self, node: Option<usize>, now: Duration) -> Snapshot;

    fn releases(&self) -> u64;

    /// Performs a node's write.
    fn write(&mut self, node: usize, request: Request, now: Duration) -> Written;

    /// Sets the lines of a dead node to their idle levels.
    /// This releases no node, because a line that equals its barrier's level is no arrival.
    fn rest(&mut self, node: usize, now: Duration) -> Rested;

    /// Returns the present state of the eureka line; `None` if the board has no such line.
    fn eureka(&self) -> Option<Eureka> {
        None
    }

    /// Returns the present state of a channel; `None` for version 1, which has no channels.
    fn channel(&mut self, _channel: usize, _now: Duration) -> Option<ChannelLook> {
        None
    }

    /// Returns the node that is sending a command over its serial lines.
    fn speaker(&self) -> Option<usize> {
        None
    }

    /// Ends the unfinished serial session of a node that disconnects.
    fn release_lines(&mut self, _node: usize, _now: Duration) {}
}

/// The result of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    /// The wires have their new levels; `released` is true if the write released the nodes.
    Done { released: bool },
    /// Another node is sending over its serial lines; the write waits until that session has ended.
    NotYet,
    /// The request is for a board of the other version.
    Foreign,
}

/// The state of a dead node after its lines were made idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rested {
    /// True if the node had entered a barrier that was not yet released.
    pub inside: bool,
    /// The level of the node's wire now; `None` if it has several lines (version 2).
    pub level: Option<bool>,
}

/// Converts a time of the hub's clock to the board's nanoseconds.
fn nanoseconds(now: Duration) -> u64 {
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}
