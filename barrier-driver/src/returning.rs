//! The toggle barrier for nodes that may reboot: each barrier is there and back.
//!
//! # The hazard
//!
//! A node that reboots takes its wire to one level, say low, at any time.
//! While the others go from low to high that only holds them, but while they go from high to low it counts as an arrival:
//! they are released although that node never entered. The barrier's hardware cannot tell the two apart.
//!
//! # The protocol
//!
//! Call the level that a rebooting node takes *rest*.
//! Only the way from rest is a barrier; the way back to rest follows at once and no node waits for it.
//!
//! 1. *Enter*: once the barrier's wires are at rest, write the other level.
//! 2. *Leave*: read the other level, write rest, and go on.
//!
//! * A wire leaves rest only by its node's entering, so the barrier leaves rest only when all nodes have entered,
//!   however many reboot: a reboot can take an arrival away and cannot make one.
//! * A reboot can hasten the way back, on which every other node has left already.
//! * A node that comes back must not open before the others have closed, as a new job does not start before the old one has ended:
//!   the way back may fall between the read and the write of its `open`, whose level would then be an arrival.
//!
//! The price beside [`ToggleBarrier`]'s one write and its polls is a second write, and a read at the next entry.
//! Purdue's PAPERS0 had the same four accesses, barrier and anti-barrier
//! (<http://aggregate.org/AFN/MUSEUM/9402.html>).

#[cfg(feature = "std")]
use crate::toggle::stopwatch;
use crate::{CloseError, EnterError, PinFault, ToggleBarrier, WaitError};
use core::task::Poll;
use core::time::Duration;
use embedded_hal::digital::{InputPin, OutputPin, PinState};

/// One node's end of a barrier that a rebooting node cannot release.
#[derive(Debug)]
pub struct ReturningBarrier<O: OutputPin, I: InputPin<Error = O::Error>> {
    toggle: ToggleBarrier<O, I>,
    rest: PinState,
    state: State,
}

/// Where the node is; on the way back `toggle` is in its second barrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// In no barrier; perhaps on the way back from the last.
    Out,
    /// The program has entered, and the others are still on the way back from the last barrier.
    Held,
    /// The wire has left rest.
    Entered,
}

impl<O: OutputPin, I: InputPin<Error = O::Error>> ReturningBarrier<O, I> {
    /// Takes an open barrier of which all nodes make a returning one, and sees that its wires are at `rest`.
    ///
    /// A barrier that idles at the other level is passed once, hence the time limit.
    #[cfg(feature = "std")]
    pub fn over(
        toggle: ToggleBarrier<O, I>,
        rest: PinState,
        progress: impl FnMut(),
        limit: Duration,
    ) -> Result<Self, WaitError<O::Error>> {
        Self::over_by(stopwatch(), toggle, rest, progress, limit)
    }

    /// Takes an open barrier by another clock than the machine's, as [`ToggleBarrier::wait_by`].
    pub fn over_by(
        now: impl FnMut() -> Duration,
        mut toggle: ToggleBarrier<O, I>,
        rest: PinState,
        progress: impl FnMut(),
        limit: Duration,
    ) -> Result<Self, WaitError<O::Error>> {
        if toggle.level() != rest && !toggle.is_entered() {
            toggle.go().map_err(WaitError::Pin)?;
        }
        toggle.wait_by(now, progress, limit)?;
        Ok(Self {
            toggle,
            rest,
            state: State::Out,
        })
    }

    /// Announces the arrival of this node, now or at the poll that finds the last barrier's way back done.
    pub fn enter(&mut self) -> Result<(), EnterError<O::Error>> {
        if self.state != State::Out {
            return Err(EnterError::AlreadyEntered);
        }
        self.state = State::Held;
        Ok(self.set_out()?)
    }

    /// Reads the wire at most twice: ready when all nodes have entered, or when this node is in no barrier.
    pub fn poll(&mut self) -> Result<Poll<()>, PinFault<O::Error>> {
        self.set_out()?;
        if self.state == State::Entered && self.toggle.poll()?.is_ready() {
            // All nodes have entered; from here on this node is on the way back.
            self.state = State::Out;
            self.toggle.go()?;
        }
        Ok(if self.state == State::Out {
            Poll::Ready(())
        } else {
            Poll::Pending
        })
    }

    /// As `ToggleBarrier::wait`.
    #[cfg(feature = "std")]
    pub fn wait(
        &mut self,
        progress: impl FnMut(),
        limit: Duration,
    ) -> Result<(), WaitError<O::Error>> {
        self.wait_by(stopwatch(), progress, limit)
    }

    /// As [`ToggleBarrier::wait_by`].
    pub fn wait_by(
        &mut self,
        mut now: impl FnMut() -> Duration,
        mut progress: impl FnMut(),
        limit: Duration,
    ) -> Result<(), WaitError<O::Error>> {
        let start = now();
        while self.poll()?.is_pending() {
            let waited = now().saturating_sub(start);
            if waited >= limit {
                return Err(WaitError::TimedOut {
                    waited,
                    driven: if self.state == State::Held {
                        self.rest
                    } else {
                        !self.rest
                    },
                });
            }
            progress();
        }
        Ok(())
    }

    /// As [`ToggleBarrier::close`].
    pub fn close(self) -> Result<(), CloseError<O::Error>> {
        self.toggle.close()
    }

    /// Whether this node is in the barrier and has not been seen to leave it.
    pub fn is_entered(&self) -> bool {
        self.state != State::Out
    }

    /// Leaves rest if the program has entered and the way back is done.
    fn set_out(&mut self) -> Result<(), PinFault<O::Error>> {
        if self.state == State::Held && self.toggle.poll()?.is_ready() {
            self.state = State::Entered;
            self.toggle.go()?;
        }
        Ok(())
    }
}
