//! One node's end of one channel of barrier version 2: a [`ToggleBarrier`] with a set of members.
//!
//! The protocol of each barrier is that of version 1, implemented by [`ToggleBarrier`].
//! A channel adds two steps: one member takes the channel when the lines of all members are at rest,
//! and frees it when they are at rest again.

use super::{ChannelCloseError, ChannelOpenError, ProgramError, Programmer, ReplyLine};
use crate::{EnterError, PinFault, ToggleBarrier, WaitError};
use core::task::Poll;
use core::time::Duration;
use embedded_hal::delay::DelayNs;
use embedded_hal::digital::{InputPin, OutputPin};

/// A channel and its members; all members must pass the same value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Membership {
    /// The number of the channel.
    pub channel: u8,
    /// The members of the channel, bit `n` for node `n`.
    pub members: u64,
}

/// A node's end of a channel.
#[derive(Debug)]
pub struct ChannelBarrier<O: OutputPin, I: InputPin<Error = O::Error>> {
    toggle: ToggleBarrier<O, I>,
    membership: Membership,
}

impl<O: OutputPin, I: InputPin<Error = O::Error>> ChannelBarrier<O, I> {
    /// Brings this node's line to rest. On the one member that passes its programmer, also takes the channel.
    ///
    /// Calls `fence` twice: when the lines of all members are at rest,
    /// and when the channel has been taken.
    /// A node that has failed also calls `fence`, so that no other node hangs in the fence;
    /// afterwards all members must agree that all have succeeded.
    pub fn open<P, Q, D, F>(
        out: O,
        input: I,
        membership: Membership,
        programmer: Option<&mut Programmer<P, Q, D>>,
        mut fence: impl FnMut() -> Result<(), F>,
    ) -> Result<Self, ChannelOpenError<O::Error, F>>
    where
        P: OutputPin<Error = O::Error>,
        Q: ReplyLine<Error = O::Error>,
        D: DelayNs,
    {
        let Membership { channel, members } = membership;
        let mut has_met = false;
        let opened = ToggleBarrier::open(out, input, || {
            has_met = true;
            fence()
        });
        let opened = opened.map_err(ChannelOpenError::Wires);
        if !has_met {
            // This node's port failed before the fence. The node calls the fence all the same,
            // and reports the port's error.
            let _ = fence();
        }
        let taken = match (&opened, programmer) {
            (Ok(_), Some(programmer)) => programmer
                .take(channel, members)
                .map_err(ChannelOpenError::Program),
            _ => Ok(()),
        };
        let met = fence().map_err(ChannelOpenError::Fence);
        let mut toggle = opened?;
        taken?;
        met?;
        if !toggle
            .is_still()
            .map_err(|e| ChannelOpenError::Wires(e.into()))?
        {
            return Err(ChannelOpenError::Moved { channel });
        }
        Ok(Self { toggle, membership })
    }

    /// As [`ToggleBarrier::enter`].
    pub fn enter(&mut self) -> Result<(), EnterError<O::Error>> {
        self.toggle.enter()
    }

    /// As [`ToggleBarrier::poll`].
    pub fn poll(&mut self) -> Result<Poll<()>, PinFault<O::Error>> {
        self.toggle.poll()
    }

    /// As [`ToggleBarrier::wait`]; after a timeout, [`missing`](Self::missing) returns the nodes that have not arrived.
    #[cfg(feature = "std")]
    pub fn wait(
        &mut self,
        progress: impl FnMut(),
        limit: Duration,
    ) -> Result<(), WaitError<O::Error>> {
        self.toggle.wait(progress, limit)
    }

    /// As [`ToggleBarrier::wait_by`].
    pub fn wait_by(
        &mut self,
        now: impl FnMut() -> Duration,
        progress: impl FnMut(),
        limit: Duration,
    ) -> Result<(), WaitError<O::Error>> {
        self.toggle.wait_by(now, progress, limit)
    }

    /// Returns the members that have not arrived in this node's present barrier;
    /// 0 if this node is in no barrier.
    pub fn missing<P, Q, D>(
        &mut self,
        programmer: &mut Programmer<P, Q, D>,
    ) -> Result<u64, ProgramError<O::Error>>
    where
        P: OutputPin<Error = O::Error>,
        Q: ReplyLine<Error = O::Error>,
        D: DelayNs,
    {
        if !self.toggle.is_entered() {
            return Ok(0);
        }
        let arrived = programmer.arrived(self.membership.channel)?;
        // All members may have arrived since `arrived` was read: then the hardware has released the barrier,
        // and the arrivals in `arrived` belong to the next barrier.
        let released = self.toggle.poll()?.is_ready();
        Ok(if released {
            0
        } else {
            self.membership.members & !arrived
        })
    }

    /// Removes `late` members from the channel; the hardware then releases the
    /// remaining members from the present barrier.
    ///
    /// Every remaining member must call this function, and one of them must pass its programmer.
    pub fn contain<P, Q, D>(
        &mut self,
        gone: u64,
        programmer: Option<&mut Programmer<P, Q, D>>,
    ) -> Result<(), ProgramError<O::Error>>
    where
        P: OutputPin<Error = O::Error>,
        Q: ReplyLine<Error = O::Error>,
        D: DelayNs,
    {
        if let Some(programmer) = programmer {
            programmer.drop_members(self.membership.channel, gone)?;
        }
        self.membership.members &= !gone;
        Ok(())
    }

    /// Leaves and frees a channel whose members `gone` have died.
    ///
    /// For survivors that are at most half of the members, such as one of two nodes:
    /// the board does not let such a minority drop the dead members.
    /// Each living member must call this function, and one of them must pass its programmer.
    /// `fence` synchronises the living members; it is called twice.
    ///
    /// Each living member first enters the barrier, unless it is already in it.
    /// If all dead members had arrived, the barrier releases;
    /// if none had arrived,
    /// the living members withdraw their arrivals. In both cases all lines are then at rest,
    /// and any nodes can take the channel.
    /// If only some dead members had arrived, the board refuses and names the nodes whose lines
    /// are not at rest.
    pub fn free_without<P, Q, D, F>(
        mut self,
        gone: u64,
        programmer: Option<&mut Programmer<P, Q, D>>,
        mut fence: impl FnMut() -> Result<(), F>,
    ) -> Result<(), ChannelCloseError<O::Error, F>>
    where
        P: OutputPin<Error = O::Error>,
        Q: ReplyLine<Error = O::Error>,
        D: DelayNs,
    {
        self.membership.members &= !gone;
        let entered = match self.toggle.poll() {
            Ok(Poll::Ready(())) => self.go(),
            Ok(Poll::Pending) => Ok(()),
            Err(fault) => Err(fault),
        };
        // A member whose port has failed still enters the fence,
        // so that no other member hangs in it.
        fence().map_err(ChannelCloseError::Fence)?;
        let entered = entered.map_err(|fault| ChannelCloseError::Program(fault.into()));
        entered.and(self.close(programmer, fence))
    }

    /// Enters; the caller has checked that this node is in no barrier.
    pub(super) fn go(&mut self) -> Result<(), PinFault<O::Error>> {
        self.toggle.go()
    }

    /// Brings the line to rest and synchronises with the other members;
    /// the member that passes its programmer frees the channel.
    pub fn close<P, Q, D, F>(
        self,
        programmer: Option<&mut Programmer<P, Q, D>>,
        fence: impl FnOnce() -> Result<(), F>,
    ) -> Result<(), ChannelCloseError<O::Error, F>>
    where
        P: OutputPin<Error = O::Error>,
        Q: ReplyLine<Error = O::Error>,
        D: DelayNs,
    {
        let rested = self.toggle.close().map_err(ChannelCloseError::Wires);
        fence().map_err(ChannelCloseError::Fence)?;
        rested?;
        match programmer {
            Some(programmer) => programmer
                .give_back(self.membership.channel)
                .map_err(ChannelCloseError::Program),
            None => Ok(()),
        }
    }

    /// Returns the channel and its members.
    pub const fn membership(&self) -> Membership {
        self.membership
    }

    /// Returns true if this node has entered the barrier and has not yet seen its release.
    pub const fn is_entered(&self) -> bool {
        self.toggle.is_entered()
    }

    /// Returns the wrapped toggle barrier, for code that works with any toggle barrier.
    /// The caller must then free the channel with [`Programmer::give_back`].
    pub fn into_toggle(self) -> ToggleBarrier<O, I> {
        self.toggle
    }
}
