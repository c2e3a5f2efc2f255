//! Failure detection by heartbeat on a dedicated channel:
//! each node enters the barrier again after every release, from a loop that does nothing else.
//!
//! A beat is a barrier: a dead node does not arrive, so the board lists it as missing.
//! If a node is stopped for longer than the limit, the other nodes treat it as dead
//! and free the channel. When the stopped node continues,
//! [`Heartbeat::poll`] reports that the node is no longer a member.

use super::{ChannelBarrier, ProgramError, Programmer, ReplyLine};
use core::time::Duration;
use embedded_hal::delay::DelayNs;
use embedded_hal::digital::{InputPin, OutputPin};

/// The period of a node's beats, and the time limit for the beats of the other members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rhythm {
    /// Time from a release to the next arrival of this node.
    pub period: Duration,
    /// Time after which members that have not arrived count as dead.
    pub limit: Duration,
}

/// The result of [`Heartbeat::poll`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pulse {
    /// No beat has completed since the last poll.
    Steady,
    /// All members have arrived: a beat is complete.
    Beat,
    /// These members have not arrived within the limit, bit `n` for node `n`.
    Silent {
        /// The members that have not arrived.
        nodes: u64,
    },
    /// The channel now has other members:
    /// the earlier members freed the channel while this node did not arrive.
    Excluded {
        /// The present members as a bit mask; 0 if the channel is free.
        members: u64,
    },
}

/// A node's end of the heartbeat.
#[derive(Debug)]
pub struct Heartbeat<O: OutputPin, I: InputPin<Error = O::Error>> {
    barrier: ChannelBarrier<O, I>,
    rhythm: Rhythm,
    /// The time at which the last beat ended or this node arrived in the present beat; `None` before the first beat.
    since: Option<Duration>,
}

impl<O: OutputPin, I: InputPin<Error = O::Error>> Heartbeat<O, I> {
    /// Creates a heartbeat whose first beat begins at the first poll.
    pub const fn new(barrier: ChannelBarrier<O, I>, rhythm: Rhythm) -> Self {
        Self {
            barrier,
            rhythm,
            since: None,
        }
    }

    /// Enters when a beat is due, and reports a complete beat or a silent member. Must be called more than once per period.
    ///
    /// `now` is the time since any fixed instant.
    pub fn poll<P, Q, D>(
        &mut self,
        now: Duration,
        programmer: &mut Programmer<P, Q, D>,
    ) -> Result<Pulse, ProgramError<O::Error>>
    where
        P: OutputPin<Error = O::Error>,
        Q: ReplyLine<Error = O::Error>,
        D: DelayNs,
    {
        let passed = self.since.map(|since| now.saturating_sub(since));
        if !self.barrier.is_entered() {
            if passed.is_none_or(|passed| passed >= self.rhythm.period) {
                self.since = Some(now);
                self.barrier.go()?;
            }
            return Ok(Pulse::Steady);
        }
        // The barrier is polled before the clock is compared with the limit:
        // while this process was stopped, all members may have arrived and the limit expired.
        if self.barrier.poll()?.is_ready() {
            self.since = Some(now);
            return Ok(Pulse::Beat);
        }
        if passed.is_none_or(|passed| passed < self.rhythm.limit) {
            return Ok(Pulse::Steady);
        }
        let membership = self.barrier.membership();
        let members = programmer.members(membership.channel)?;
        if members != membership.members {
            return Ok(Pulse::Excluded { members });
        }
        match self.barrier.missing(programmer)? {
            // The last member arrived after the poll.
            0 => {
                self.since = Some(now);
                Ok(Pulse::Beat)
            }
            nodes => Ok(Pulse::Silent { nodes }),
        }
    }

    /// Returns the barrier, which the caller can free with [`ChannelBarrier::free_without`] or
    /// close.
    pub fn into_barrier(self) -> ChannelBarrier<O, I> {
        self.barrier
    }
}
