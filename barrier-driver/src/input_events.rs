//! Inputs whose change wakes a process that sleeps in the kernel.
//!
//! # The promise
//!
//! An input says whether a change of its level wakes a sleeper. Those that cannot, which is the default, never sleep.
//! A sleep ends at the latest at its limit, so an interrupt that never comes costs time and nothing else.
//!
//! # The protocol
//!
//! 1. [`arm`](InputEvents::arm) forgets the changes up to now; those that follow are remembered.
//! 2. The caller reads the level once more. A change before step 1 is in that level.
//! 3. [`sleep_until_edge`](InputEvents::sleep_until_edge) ends at once if a change was remembered since step 1.
//!
//! So a change is seen by the read of step 2 or ends the sleep of step 3, whenever it comes: no wake-up is lost.
//! One caller at a time sleeps on a line, because arming takes the remembered changes away.

use crate::{PinFault, ToggleBarrier};
use core::task::Poll;
use core::time::Duration;
use embedded_hal::digital::{InputPin, OutputPin, PinState};

#[cfg(feature = "std")]
use crate::{WaitError, toggle::stopwatch};

/// What an input can do for a process that shares its core and wants to sleep; an empty `impl` is an input that wakes no sleeper.
pub trait InputEvents: InputPin {
    /// Whether a change of the level wakes a sleeper.
    fn wakes_sleepers(&mut self) -> bool {
        false
    }

    /// Forgets the changes up to now.
    fn arm(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Sleeps until the level may have become `awaited` since [`arm`](Self::arm), for at most `limit`.
    ///
    /// It may end early for any reason: the caller reads the level.
    fn sleep_until_edge(
        &mut self,
        _awaited: PinState,
        _limit: Duration,
    ) -> Result<(), Self::Error> {
        Ok(())
    }
}

impl<O: OutputPin, I: InputEvents<Error = O::Error>> ToggleBarrier<O, I> {
    /// Whether the release can wake this process while it sleeps in the kernel.
    pub fn wakes_sleepers(&mut self) -> bool {
        self.input().wakes_sleepers()
    }

    /// [`poll`](Self::poll), but where there is no release yet this process sleeps until one may have come, for at most `limit`.
    ///
    /// Where the port cannot wake a sleeper this is a poll: the caller yields or naps itself.
    /// The process serves no other node while it sleeps, so `limit` is how long the others can go without it.
    pub fn poll_asleep(&mut self, limit: Duration) -> Result<Poll<()>, PinFault<O::Error>> {
        if self.poll()?.is_ready() {
            return Ok(Poll::Ready(()));
        }
        if !self.wakes_sleepers() {
            return Ok(Poll::Pending);
        }
        self.input().arm().map_err(PinFault::Read)?;
        // The release may have come between the first look and the arming, which has then forgotten it.
        if self.poll()?.is_ready() {
            return Ok(Poll::Ready(()));
        }
        let awaited = !self.level();
        self.input()
            .sleep_until_edge(awaited, limit)
            .map_err(PinFault::Read)?;
        self.poll()
    }

    /// [`wait`](Self::wait) of a process that shares its core: between two calls of `progress` it sleeps until the release
    /// may have come, for at most `nap` at a time.
    ///
    /// Where the port cannot wake a sleeper it is `wait`, and `progress` decides how to treat the processor.
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
