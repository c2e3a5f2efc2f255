//! A toggle barrier for nodes that may reboot: each barrier is a transition and its return.
//!
//! # The hazard
//!
//! A rebooting node can take its wire to one level, say low, at any time.
//! While the others wait for the transition from low to high that only delays them, but in the transition from high to low it counts as an arrival:
//! they are released although that node never entered. The barrier's hardware cannot distinguish the two cases.
//!
//! # The protocol
//!
//! The level to which a reboot takes a wire is called *rest*.
//! Only the transition from rest is a barrier; the return to rest follows at once and no node waits for it.
//!
//! 1. *Enter*: once the barrier's wires are at rest, write the other level.
//! 2. *Leave*: after reading the other level, write rest and continue.
//!
//! * A node's wire leaves rest only when the node enters, so the barrier leaves rest only when all nodes have entered,
//!   however many reboot: a reboot can withdraw an arrival and cannot create one.
//! * A reboot can speed up the return, but every other node has left the barrier by then.
//! * A restarted node must not call `open` before all other nodes have closed.
//!   The launcher ensures this if a new job starts only after the old job has ended.
//!   `open` reads the barrier's level and writes it to the wire:
//!   if the barrier returned to rest between the two, the written level would be an arrival.
//!
//! In addition to [`ToggleBarrier`]'s one write and its polls it costs a second write, and a read at the next entry.
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

/// The state of the node; during the return, `toggle` is in its second barrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The node is in no barrier; the return of the last barrier may be incomplete.
    Out,
    /// The program has entered, but the return of the last barrier is not complete.
    Held,
    /// The wire has left rest.
    Entered,
}

impl<O: OutputPin, I: InputPin<Error = O::Error>> ReturningBarrier<O, I> {
    /// Makes a returning barrier of an open barrier, which all nodes must do together, and brings the wires to `rest`.
    ///
    /// If the barrier idles at the other level, the nodes pass one barrier first, hence the time limit.
    #[cfg(feature = "std")]
    pub fn over(
        toggle: ToggleBarrier<O, I>,
        rest: PinState,
        progress: impl FnMut(),
        limit: Duration,
    ) -> Result<Self, WaitError<O::Error>> {
        Self::over_by(stopwatch(), toggle, rest, progress, limit)
    }

    /// As `over`, with another clock than the machine's, as in [`ToggleBarrier::wait_by`].
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

    /// Announces the arrival of this node, either now or in the poll that finds the return of the last barrier complete.
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
            // All nodes have entered; from here on this node is in the return.
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

    /// Closes the barrier and returns the pins, as [`ToggleBarrier::free`] does.
    pub fn free(self) -> (O, I, Result<(), CloseError<O::Error>>) {
        self.toggle.free()
    }

    /// Returns true if this node has entered the barrier and has not yet polled its release.
    pub fn is_entered(&self) -> bool {
        self.state != State::Out
    }

    /// Leaves rest if the program has entered and the return is complete.
    fn set_out(&mut self) -> Result<(), PinFault<O::Error>> {
        if self.state == State::Held && self.toggle.poll()?.is_ready() {
            self.state = State::Entered;
            self.toggle.go()?;
        }
        Ok(())
    }
}
