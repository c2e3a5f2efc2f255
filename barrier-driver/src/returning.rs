//! A toggle barrier for nodes that may reboot: a barrier consists of a transition of the wires and the transition back.
//!
//! # The hazard
//!
//! A rebooting node can take its wire to one level, say low, at any time.
//! While the others wait for the transition from low to high, this only delays them;
//! but in the transition from high to low it counts as an arrival:
//! they are released although that node never entered. The hardware cannot distinguish the two cases.
//!
//! # The protocol
//!
//! The level to which a reboot takes a wire is called *rest*.
//! Only the transition from rest is a barrier.
//! The return to rest follows immediately, and no node waits for it.
//!
//! 1. *Enter*: when the barrier's wire is at rest, write the other level.
//! 2. *Leave*: when the barrier's wire has the other level, write rest and continue.
//!
//! * A node's wire leaves rest only when the node enters, so the barrier leaves rest only when all nodes have entered,
//!   however many reboot: a reboot can withdraw an arrival and cannot create one.
//! * A reboot can speed up the return, but every other node has left the barrier by then.
//! * A restarted node must not call `open` before all other nodes have closed.
//!   The launcher ensures this if a new job starts only after the old job has ended.
//!   `open` reads the barrier's level and writes it to the wire:
//!   if the barrier returned to rest between the two, the written level would be an arrival.
//!
//! In addition to the one write and the polls of a [`ToggleBarrier`], a barrier costs a second write, and a read at the next entry.
//! Purdue's PAPERS0 made the same four accesses, called barrier and anti-barrier
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
    /// The node is in no barrier; the return of the last barrier need not be complete.
    Out,
    /// The program has entered, but the wire is still at rest because the return of the last barrier is not complete.
    Held,
    /// The wire has left rest.
    Entered,
}

impl<O: OutputPin, I: InputPin<Error = O::Error>> ReturningBarrier<O, I> {
    /// Converts an open toggle barrier, and brings the wires to `rest`; all nodes must call this function together.
    ///
    /// If the barrier idles at the other level, the nodes first pass one barrier, which `limit` applies to.
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

    /// Announces the arrival of this node: immediately, or in the later poll that finds the last barrier's return complete.
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
            // All nodes have entered; this node's wire returns to rest.
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

    /// Drives the wire away from rest if the program has entered and the last barrier's return is complete.
    fn set_out(&mut self) -> Result<(), PinFault<O::Error>> {
        if self.state == State::Held && self.toggle.poll()?.is_ready() {
            self.state = State::Entered;
            self.toggle.go()?;
        }
        Ok(())
    }
}
