//! Inputs whose interrupts can wake a process that sleeps in the kernel.
//!
//! # The guarantee
//!
//! An input reports whether a change of its level wakes a sleeping process. The default is that it does not;
//! then its sleep returns immediately.
//! A sleep ends at its time limit at the latest, so a lost interrupt costs only time.
//!
//! # The protocol
//!
//! 1. [`arm`](InputEvents::arm) discards all earlier changes; the input remembers later ones.
//! 2. The caller reads the level once more. This read sees the effect of all changes before step 1.
//! 3. [`sleep_until_edge`](InputEvents::sleep_until_edge) returns immediately if the input has remembered a change since step 1.
//!
//! So a change is either read in step 2 or ends the sleep in step 3, and no wake-up is lost.
//! Only one caller at a time may sleep on a line, because arming discards the remembered changes.

use crate::{PinFault, ToggleBarrier};
use core::task::Poll;
use core::time::Duration;
use embedded_hal::digital::{InputPin, OutputPin, PinState};

#[cfg(feature = "std")]
use crate::{WaitError, toggle::stopwatch};

/// An input that may wake a sleeping process. An empty `impl` declares an input that never does.
pub trait InputEvents: InputPin {
    /// Returns true if a change of the level wakes a sleeper.
    fn wakes_sleepers(&mut self) -> bool {
        false
    }

    /// Discards all changes before this call.
    fn arm(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Sleeps until the level may have become `awaited` since [`arm`](Self::arm), for at most `limit`.
    ///
    /// The call may return early for any reason; the caller then reads the level.
    fn sleep_until_edge(
        &mut self,
        _awaited: PinState,
        _limit: Duration,
    ) -> Result<(), Self::Error> {
        Ok(())
    }
}

impl<O: OutputPin, I: InputEvents<Error = O::Error>> ToggleBarrier<O, I> {
    /// Returns true if the release can wake this process while it sleeps in the kernel.
    pub fn wakes_sleepers(&mut self) -> bool {
        self.input().wakes_sleepers()
    }

    /// As [`poll`](Self::poll); but if there is no release yet, the process sleeps for at most `limit` until one may have occurred.
    ///
    /// If the port cannot wake a sleeping process, this is a plain poll, and the caller yields or sleeps itself.
    /// The process does nothing for other nodes while it sleeps.
    /// So `limit` must be the time for which the other nodes need nothing from this process.
    pub fn poll_asleep(&mut self, limit: Duration) -> Result<Poll<()>, PinFault<O::Error>> {
        if self.poll()?.is_ready() {
            return Ok(Poll::Ready(()));
        }
        if !self.wakes_sleepers() {
            return Ok(Poll::Pending);
        }
        self.input().arm().map_err(PinFault::Read)?;
        // A release between the first poll and `arm` was discarded by `arm`, so the level is read again.
        if self.poll()?.is_ready() {
            return Ok(Poll::Ready(()));
        }
        let awaited = !self.level();
        self.input()
            .sleep_until_edge(awaited, limit)
            .map_err(PinFault::Read)?;
        self.poll()
    }

    /// As [`wait`](Self::wait), on an oversubscribed core: between two calls of `progress` the process sleeps until the release
    /// may have occurred, for at most `nap` at a time.
    ///
    /// If the port cannot wake a sleeper, this is `wait`,
    /// and `progress` decides how to use the processor.
    #[cfg(feature = "std")]
    pub fn wait_asleep(
        &mut self,
        mut progress: impl FnMut(),
        nap: Duration,
        limit: Duration,
    ) -> Result<(), WaitError<O::Error>> {
        if self.poll()?.is_ready() {
            return Ok(());
        }
        let mut clock = stopwatch();
        let mut left = limit.saturating_sub(clock());
        loop {
            progress();
            if self.poll_asleep(nap.min(left))?.is_ready() {
                return Ok(());
            }
            let waited = clock();
            if waited >= limit {
                return Err(WaitError::TimedOut {
                    waited,
                    driven: !self.level(),
                });
            }
            left = limit.saturating_sub(waited);
        }
    }
}

#[cfg(all(test, feature = "std"))]
mod tests;
