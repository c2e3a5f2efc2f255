//! One node's end of the toggle barrier: open, enter, poll or wait, close.
//!
//! A [`ToggleBarrier`] owns its two pins, and no other code may drive the output while it lives.
//! The protocol and the argument for the remembered level are at the head of the crate.

use crate::{CloseError, EnterError, OpenError, PinFault, WaitError};
use core::task::Poll;
use core::time::Duration;
use embedded_hal::digital::{InputPin, OutputPin, PinState};
#[cfg(feature = "std")]
use std::time::Instant;

/// How often `close` writes the level back before it gives up on a wire that will not stay still.
///
/// Without a fault the second try succeeds: the barrier may complete between our read and our write,
/// but then our wire is not idle and the barrier can complete at most once more.
const CLOSE_TRIES: u32 = 3;

/// The driver of one node's wire pair.
///
/// Both pins come from one port and share its error type.
#[derive(Debug)]
pub struct ToggleBarrier<O: OutputPin, I: InputPin<Error = O::Error>> {
    out: O,
    input: I,
    /// The level of the last completed barrier; while the node is out, also the level on its wire.
    level: PinState,
    /// Whether the wire has the opposite level, that is, the node is in the barrier.
    entered: bool,
    /// Whether the wire has been left idle for good, so that dropping has nothing to do.
    closed: bool,
}

impl<O: OutputPin, I: InputPin<Error = O::Error>> ToggleBarrier<O, I> {
    /// Makes the wire idle, meets the other nodes in `fence`, and checks that nothing has moved.
    ///
    /// All nodes have to open together, and `fence` must return only after all of them have called theirs;
    /// it is the one thing the hardware barrier needs a software barrier for.
    ///
    /// * An output left over from power-on or an aborted job is overwritten by the idle level.
    /// * A release that such leftovers were about to cause happens before the last fence returns,
    ///   and the node that read the level before it refuses: it opens cleanly when tried again.
    /// * A floating or inverted input can look idle; [`self_test`](crate::self_test()) finds it.
    ///
    /// On refusal the wire is left idle, if the port permits.
    /// A node that opened while another refused closes again: whether to use the barrier is for all to agree on.
    pub fn open<F>(
        out: O,
        input: I,
        fence: impl FnOnce() -> Result<(), F>,
    ) -> Result<Self, OpenError<O::Error, F>> {
        let mut barrier = Self {
            out,
            input,
            level: PinState::Low,
            entered: false,
            closed: false,
        };
        let idle = barrier.read()?;
        barrier.write(idle)?;
        barrier.level = idle;
        fence().map_err(OpenError::Fence)?;
        // From here on an error drops `barrier`, which makes the wire idle again.
        if barrier.read()? != idle {
            return Err(OpenError::InputMoved { idle });
        }
        Ok(barrier)
    }

    /// Announces the arrival of this node: one write, no read.
    pub fn enter(&mut self) -> Result<(), EnterError<O::Error>> {
        if self.entered {
            return Err(EnterError::AlreadyEntered);
        }
        Ok(self.go()?)
    }

    /// Enters; the caller knows that this node is in no barrier.
    pub(crate) fn go(&mut self) -> Result<(), PinFault<O::Error>> {
        // Entered even if the port fails, for the level may have reached the wire; `close` then withdraws it.
        self.entered = true;
        self.write(!self.level)
    }

    /// Reads the wire once: ready when all nodes have entered, or when this node is in no barrier.
    pub fn poll(&mut self) -> Result<Poll<()>, PinFault<O::Error>> {
        if self.entered {
            let driven = !self.level;
            if self.read()? != driven {
                return Ok(Poll::Pending);
            }
            self.level = driven;
            self.entered = false;
        }
        Ok(Poll::Ready(()))
    }

    /// Polls until the release, calling `progress` between polls, for at most `limit`.
    ///
    /// `progress` serves whatever the other nodes may still need from this one in order to arrive,
    /// and it decides how the wait treats the processor: it may spin, yield or sleep.
    /// After a time-out the node is still in the barrier: it may wait again, or close.
    ///
    /// A release may come between a poll and the sleep of `progress`, so a sleep needs a bell that remembers having been
    /// rung, or a time limit.
    /// A caller whose bell only rings sleepers uses [`poll`](Self::poll) itself, after it has announced that it sleeps.
    #[cfg(feature = "std")]
    pub fn wait(
        &mut self,
        progress: impl FnMut(),
        limit: Duration,
    ) -> Result<(), WaitError<O::Error>> {
        self.wait_by(stopwatch(), progress, limit)
    }

    /// `wait` by another clock than the machine's: `now` is the time since any instant of the caller's choice.
    ///
    /// A simulator's time passes as its accesses do; a microcontroller's comes from a timer.
    pub fn wait_by(
        &mut self,
        mut now: impl FnMut() -> Duration,
        mut progress: impl FnMut(),
        limit: Duration,
    ) -> Result<(), WaitError<O::Error>> {
        // The common case is a first poll that fails and a limit far away, so the clock starts after it.
        if self.poll()?.is_ready() {
            return Ok(());
        }
        let start = now();
        loop {
            progress();
            if self.poll()?.is_ready() {
                return Ok(());
            }
            let waited = now().saturating_sub(start);
            if waited >= limit {
                return Err(WaitError::TimedOut {
                    waited,
                    driven: !self.level,
                });
            }
        }
    }

    /// Puts the wire back to idle, withdrawing an arrival that has not been released.
    ///
    /// Dropping does the same and cannot report a failure.
    /// If the others complete the barrier while it is being withdrawn, the wire follows to the new idle level.
    pub fn close(mut self) -> Result<(), CloseError<O::Error>> {
        let result = self.rest();
        self.closed = true;
        result
    }

    /// Whether this node is in the barrier and has not been seen to leave it.
    pub const fn is_entered(&self) -> bool {
        self.entered
    }

    /// The remembered level: what the barrier's wire had when this node last left.
    pub const fn level(&self) -> PinState {
        self.level
    }

    /// The pin that the barrier's wire ends at.
    pub(crate) const fn input(&mut self) -> &mut I {
        &mut self.input
    }

    /// Whether the barrier's wire still has the level that this node remembers; it is asked outside of barriers.
    #[cfg(feature = "std")]
    pub(crate) fn is_still(&mut self) -> Result<bool, PinFault<O::Error>> {
        Ok(self.read()? == self.level)
    }

    /// Writes the level that is read until both agree.
    fn rest(&mut self) -> Result<(), CloseError<O::Error>> {
        for _ in 0..CLOSE_TRIES {
            let idle = self.read()?;
            self.write(idle)?;
            if self.read()? == idle {
                self.level = idle;
                self.entered = false;
                return Ok(());
            }
        }
        Err(CloseError::NeverStill { tries: CLOSE_TRIES })
    }

    fn read(&mut self) -> Result<PinState, PinFault<O::Error>> {
        self.input
            .is_high()
            .map(PinState::from)
            .map_err(PinFault::Read)
    }

    fn write(&mut self, level: PinState) -> Result<(), PinFault<O::Error>> {
        self.out.set_state(level).map_err(PinFault::Write)
    }
}

/// The machine's clock, started when it is first looked at.
#[cfg(feature = "std")]
pub(crate) fn stopwatch() -> impl FnMut() -> Duration {
    let mut start = None;
    move || start.get_or_insert_with(Instant::now).elapsed()
}

impl<O: OutputPin, I: InputPin<Error = O::Error>> Drop for ToggleBarrier<O, I> {
    fn drop(&mut self) {
        if !self.closed {
            // No caller is left to tell: a node that unwinds has its own error, and the others have their time limit.
            let _ = self.rest();
        }
    }
}
