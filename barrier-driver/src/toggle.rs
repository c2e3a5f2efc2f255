//! One node's end of the toggle barrier: open, enter, poll or wait, close.
//!
//! A [`ToggleBarrier`] owns its two pins, and no other code may drive the output while it exists.
//! The crate documentation describes the protocol and why the remembered level is correct.

// `unsafe` moves the pins out of a barrier, which has a `Drop`.
#![allow(unsafe_code)]

use crate::{CloseError, EnterError, OpenError, PinFault, WaitError};
use core::mem::ManuallyDrop;
use core::ptr;
use core::task::Poll;
use core::time::Duration;
use embedded_hal::digital::{InputPin, OutputPin, PinState};
#[cfg(feature = "std")]
use std::time::Instant;

/// Number of times that `close` tries to write the level back before it returns an error.
///
/// Without a fault the second try succeeds: the barrier may complete between this node's read and its write,
/// but then its wire is not idle and the barrier can complete at most once more.
const CLOSE_TRIES: u32 = 3;

/// The driver of one node's wire pair, open for barriers.
///
/// Both pins come from one port and share its error type.
#[derive(Debug)]
pub struct ToggleBarrier<O: OutputPin, I: InputPin<Error = O::Error>> {
    out: O,
    input: I,
    /// The level of the last completed barrier; while the node is out, also the level on its wire.
    level: PinState,
    /// True if the node is in a barrier: its wire has the opposite of `level`.
    entered: bool,
    /// True if `close` has left the wire idle, so that `drop` does nothing.
    closed: bool,
}

impl<O: OutputPin, I: InputPin<Error = O::Error>> ToggleBarrier<O, I> {
    /// Makes the wire idle, synchronises with the other nodes in `fence`, and checks that the barrier's wire has not changed.
    ///
    /// All nodes must open together, and `fence` must return only after all nodes have called theirs;
    /// this is the only software barrier that the hardware barrier needs.
    ///
    /// * An output level that power-on or an aborted job left is overwritten with the idle level.
    ///   If such leftovers cause a release, it occurs before the last fence returns.
    ///   A node that read the level before it returns an error, and the next try succeeds.
    /// * A floating or inverted input can look idle; [`self_test`](crate::self_test()) detects this.
    ///
    /// After an error the wire is left idle, if the port permits.
    /// A node that opened while another failed must close again: all nodes have to agree whether to use the barrier.
    pub fn open<F>(
        out: O,
        input: I,
        fence: impl FnOnce() -> Result<(), F>,
    ) -> Result<Self, OpenError<O::Error, F>> {
        let barrier = Self::idle(out, input)?;
        fence().map_err(OpenError::Fence)?;
        // From here on, an error drops `barrier`, which makes the wire idle again.
        barrier.after_fence()
    }

    /// The first half of `open`, before the fence: makes the wire idle.
    pub(crate) fn idle(out: O, input: I) -> Result<Self, PinFault<O::Error>> {
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
        Ok(barrier)
    }

    /// The second half of `open`, after the fence: checks that the barrier's wire has not changed.
    pub(crate) fn after_fence<F>(mut self) -> Result<Self, OpenError<O::Error, F>> {
        let idle = self.level;
        if self.is_still()? {
            Ok(self)
        } else {
            Err(OpenError::InputMoved { idle })
        }
    }

    /// Announces the arrival of this node: one write, no read.
    pub fn enter(&mut self) -> Result<(), EnterError<O::Error>> {
        if self.entered {
            return Err(EnterError::AlreadyEntered);
        }
        Ok(self.go()?)
    }

    /// Enters; the caller has checked that this node is in no barrier.
    pub(crate) fn go(&mut self) -> Result<(), PinFault<O::Error>> {
        // `entered` is set even if the port fails, because the level may have reached the wire; `close` then withdraws the arrival.
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
    /// `progress` does all work that the other nodes need from this one before they can arrive,
    /// and decides how the wait uses the processor: it may spin, yield or sleep.
    /// After a timeout the node is still in the barrier: it may wait again, or close.
    ///
    /// The release may occur between a poll and a sleep in `progress`, so the sleep needs a timeout,
    /// or a wake-up that is remembered if it comes before the sleep.
    /// A caller whose wake-up is not remembered calls [`poll`](Self::poll) itself, after it has announced that it will sleep.
    #[cfg(feature = "std")]
    pub fn wait(
        &mut self,
        progress: impl FnMut(),
        limit: Duration,
    ) -> Result<(), WaitError<O::Error>> {
        self.wait_by(stopwatch(), progress, limit)
    }

    /// `wait` with another clock than the machine's: `now` returns the time since any fixed instant.
    ///
    /// Examples are the simulated time of a simulator and the timer of a microcontroller.
    pub fn wait_by(
        &mut self,
        mut now: impl FnMut() -> Duration,
        mut progress: impl FnMut(),
        limit: Duration,
    ) -> Result<(), WaitError<O::Error>> {
        // The first poll usually finds no release and the limit is far away, so the clock starts after it.
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

    /// Restores the wire to idle, withdrawing an arrival that has not been released.
    ///
    /// Dropping the barrier does the same but cannot report a failure.
    /// If the barrier completes while the arrival is being withdrawn, the wire is set to the new idle level.
    pub fn close(mut self) -> Result<(), CloseError<O::Error>> {
        let result = self.rest();
        self.closed = true;
        result
    }

    /// Restores the wire to idle as [`close`](Self::close) does, and returns the pins for another use.
    ///
    /// The pins are returned even if the wire could not be made idle, because a microcontroller cannot obtain them again.
    pub fn free(mut self) -> (O, I, Result<(), CloseError<O::Error>>) {
        let result = self.rest();
        let freed = ManuallyDrop::new(self);
        // SAFETY: both pins are initialised, since `freed` was a complete barrier until the line above. Each is read once, and `freed`
        // is neither used again nor dropped, so each pin has one owner; the remaining fields are plain values without a drop.
        let (out, input) = unsafe {
            (
                ptr::read(&raw const freed.out),
                ptr::read(&raw const freed.input),
            )
        };
        (out, input, result)
    }

    /// Returns true if this node has entered the barrier and has not yet polled its release.
    pub const fn is_entered(&self) -> bool {
        self.entered
    }

    /// Returns the remembered level: the level of the barrier's wire when this node last left a barrier.
    pub const fn level(&self) -> PinState {
        self.level
    }

    /// The input pin, which reads the barrier's wire.
    pub(crate) const fn input(&mut self) -> &mut I {
        &mut self.input
    }

    /// Returns true if the barrier's wire still has the remembered level; the node must be in no barrier.
    pub(crate) fn is_still(&mut self) -> Result<bool, PinFault<O::Error>> {
        Ok(self.read()? == self.level)
    }

    /// Reads the level of the barrier's wire and writes it to this node's wire, until a second read returns the same level.
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

/// Returns a stopwatch on the machine's clock; its first reading starts it.
#[cfg(feature = "std")]
pub(crate) fn stopwatch() -> impl FnMut() -> Duration {
    let mut start = None;
    move || start.get_or_insert_with(Instant::now).elapsed()
}

impl<O: OutputPin, I: InputPin<Error = O::Error>> Drop for ToggleBarrier<O, I> {
    fn drop(&mut self) {
        if !self.closed {
            // No caller can receive the error: a node that panics reports its own error, and the other nodes' waits have a limit.
            let _ = self.rest();
        }
    }
}
