//! A node's lines on a served board of version 2.
//!
//! The client stores the board's state from the last reply:
//! its node's lines, and a release counter per channel.
//! A channel's release line changes only by a release,
//! and the server notifies every node of a release.
//! So a node that waits in a channel only receives.
//! Otherwise, and for the reply line during programming, each read sends a request.

use super::address::Address;
use super::board::OUTWARD;
use super::error::{ConnectError, LineError};
use super::frame::{CHANNELS_VERSION, Role};
use super::line::{Line, Wanted};
use fpga_model::channels::MAX_CHANNELS;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The lines of one node of a served version 2 board.
/// Outward are the arrivals of the channels, then serial clock, data and select;
/// inward are the releases.
#[derive(Debug)]
pub struct ChannelLines(Mutex<Hand>);

#[derive(Debug)]
struct Hand {
    line: Line,
    /// Mask of the arrival lines that this connection has written.
    /// The levels of the other lines are left over from earlier processes.
    wrote: u8,
}

impl ChannelLines {
    /// Claims the lines of `node`; `limit` is the time limit for each answer.
    pub fn connect(server: &Address, node: usize, limit: Duration) -> Result<Self, ConnectError> {
        // A number above 255 becomes 255. No board has that node,
        // so the server rejects it in any case.
        let role = Role::Node(u8::try_from(node).unwrap_or(u8::MAX));
        let wanted = Wanted {
            version: Some(CHANNELS_VERSION),
            nodes: None,
        };
        let line = Line::connect_within(server, role, wanted, limit)?;
        Ok(Self(Mutex::new(Hand { line, wrote: 0 })))
    }

    /// Sets the limit within which a server that no longer answers is detected, also during a wait.
    pub fn detect_loss_within(&self, limit: Duration) {
        self.hand().line.detect_loss_within(limit);
    }

    /// Checks with a request that the server answers.
    pub fn check(&self) -> Result<(), LineError> {
        self.hand().line.look().map(drop)
    }

    /// Drives an outward line; a nonexistent line is ignored.
    pub fn set(&self, line: usize, high: bool) -> Result<(), LineError> {
        if line >= OUTWARD {
            return Ok(());
        }
        let mut hand = self.hand();
        let bit = 1 << line;
        let levels = hand.levels() as u8 & !bit | if high { bit } else { 0 };
        hand.line.drive(levels)?;
        hand.wrote |= bit;
        Ok(())
    }

    /// Returns the level of an inward line.
    pub fn get(&self, line: usize) -> Result<bool, LineError> {
        let mut hand = self.hand();
        match hand.is_waiting(line) {
            true => hand.line.listen()?,
            false => drop(hand.line.look()?),
        }
        Ok(hand.levels() >> (OUTWARD + line) & 1 == 1)
    }

    fn hand(&self) -> MutexGuard<'_, Hand> {
        // If a request panics halfway, the next request fails with a message,
        // so a poisoned lock is usable.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hand {
    /// Returns the node's lines from the last reply:
    /// outward in the low bits, inward in the higher bits.
    fn levels(&self) -> u64 {
        self.line.view().board.inputs
    }

    /// Returns true if this node has arrived in the channel of this inward line.
    /// The next change of the line is then the release.
    fn is_waiting(&self, line: usize) -> bool {
        let levels = self.levels();
        let bit = |at: usize| levels >> at & 1;
        let speaks = bit(OUTWARD - 1) == 1;
        let shared = line + 1 == MAX_CHANNELS;
        line < MAX_CHANNELS
            && self.wrote >> line & 1 == 1
            && bit(line) != bit(OUTWARD + line)
            && !(shared && speaks)
    }
}
