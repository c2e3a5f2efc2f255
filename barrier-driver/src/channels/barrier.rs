//! One node's end of one channel: open, enter, poll or wait, close; a [`ToggleBarrier`] that knows its members.
//!
//! The protocol is version 1's and is not written again here.
//! What a channel adds is at its two ends: it is taken when all members rest, and given back when they rest again.

use super::{ChannelCloseError, ChannelOpenError, ProgramError, Programmer};
use crate::{EnterError, PinFault, ToggleBarrier, WaitError};
use core::task::Poll;
use core::time::Duration;
use embedded_hal::delay::DelayNs;
use embedded_hal::digital::{InputPin, OutputPin};

/// Which channel, and with which nodes; every member says the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seat {
    /// The channel.
    pub channel: u8,
    /// Its members, bit `n` for node `n`.
    pub members: u64,
}

/// A node's end of a channel.
#[derive(Debug)]
pub struct ChannelBarrier<O: OutputPin, I: InputPin<Error = O::Error>> {
    toggle: ToggleBarrier<O, I>,
    seat: Seat,
}

impl<O: OutputPin, I: InputPin<Error = O::Error>> ChannelBarrier<O, I> {
    /// Brings this node's line to rest, and, for the one member that passes its programmer, takes the channel.
    ///
    /// `fence` is met twice: when all members rest, and when the channel is theirs.
    /// It is met also by a node that has failed, so that a failure leaves no node in it;
    /// whether all have succeeded, and the channel is to be used, is for all to agree on.
    pub fn open<P, Q, D, F>(
        out: O,
        input: I,
        seat: Seat,
        programmer: Option<&mut Programmer<P, Q, D>>,
        mut fence: impl FnMut() -> Result<(), F>,
    ) -> Result<Self, ChannelOpenError<O::Error, F>>
    where
        P: OutputPin<Error = O::Error>,
        Q: InputPin<Error = O::Error>,
        D: DelayNs,
    {
        let Seat { channel, members } = seat;
        let mut has_met = false;
        let opened = ToggleBarrier::open(out, input, || {
            has_met = true;
            fence()
        });
        let opened = opened.map_err(ChannelOpenError::Wires);
        if !has_met {
            // The port has failed before the fence, and this node reports that failure rather than one of the fence.
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
        Ok(Self { toggle, seat })
    }

    /// As [`ToggleBarrier::enter`].
    pub fn enter(&mut self) -> Result<(), EnterError<O::Error>> {
        self.toggle.enter()
    }

    /// As [`ToggleBarrier::poll`].
    pub fn poll(&mut self) -> Result<Poll<()>, PinFault<O::Error>> {
        self.toggle.poll()
    }

    /// As [`ToggleBarrier::wait`]; [`missing`](Self::missing) then tells which nodes have not come.
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

    /// The members that have not arrived in the barrier that this node waits in; none if it is in no barrier.
    pub fn missing<P, Q, D>(
        &mut self,
        programmer: &mut Programmer<P, Q, D>,
    ) -> Result<u64, ProgramError<O::Error>>
    where
        P: OutputPin<Error = O::Error>,
        Q: InputPin<Error = O::Error>,
        D: DelayNs,
    {
        if !self.toggle.is_entered() {
            return Ok(0);
        }
        let arrived = programmer.arrived(self.seat.channel)?;
        // All may have arrived meanwhile: then the hardware has released, and no node has arrived in the next barrier.
        let released = self.toggle.poll()?.is_ready();
        Ok(if released {
            0
        } else {
            self.seat.members & !arrived
        })
    }

    /// Goes on without these members, which are late: the barrier that this node waits in releases those that are left.
    ///
    /// Every member that is left calls, one of them with its programmer; the others learn of it by their release.
    pub fn contain<P, Q, D>(
        &mut self,
        gone: u64,
        programmer: Option<&mut Programmer<P, Q, D>>,
    ) -> Result<(), ProgramError<O::Error>>
    where
        P: OutputPin<Error = O::Error>,
        Q: InputPin<Error = O::Error>,
        D: DelayNs,
    {
        if let Some(programmer) = programmer {
            programmer.drop_members(self.seat.channel, gone)?;
        }
        self.seat.members &= !gone;
        Ok(())
    }

    /// Brings the line to rest, meets the other members, and, for the one that passes its programmer, frees the channel.
    pub fn close<P, Q, D, F>(
        self,
        programmer: Option<&mut Programmer<P, Q, D>>,
        fence: impl FnOnce() -> Result<(), F>,
    ) -> Result<(), ChannelCloseError<O::Error, F>>
    where
        P: OutputPin<Error = O::Error>,
        Q: InputPin<Error = O::Error>,
        D: DelayNs,
    {
        let rested = self.toggle.close().map_err(ChannelCloseError::Wires);
        fence().map_err(ChannelCloseError::Fence)?;
        rested?;
        match programmer {
            Some(programmer) => programmer
                .give_back(self.seat.channel)
                .map_err(ChannelCloseError::Program),
            None => Ok(()),
        }
    }

    /// The channel and its members.
    pub const fn seat(&self) -> Seat {
        self.seat
    }

    /// Whether this node is in the barrier and has not been seen to leave it.
    pub const fn is_entered(&self) -> bool {
        self.toggle.is_entered()
    }

    /// The barrier itself, for what works over any toggle barrier; the channel is then given back by a programmer.
    pub fn into_toggle(self) -> ToggleBarrier<O, I> {
        self.toggle
    }
}
