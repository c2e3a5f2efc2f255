//! The status line that carries the release of the fifth channel, or the reply while this node's session is open.
//!
//! The poller of the channel and the programmer are one node but may be two threads.
//! The line belongs to one of them at a time: a session holds it from before select rises until after it has fallen,
//! so no poll ever takes a bit of a reply for a release.

use crate::InputEvents;
use core::time::Duration;
use embedded_hal::digital::{ErrorType, InputPin, PinState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The line; clones are the same line.
#[derive(Debug)]
pub struct LastLine<I>(Arc<Mutex<I>>);

impl<I> LastLine<I> {
    /// The line behind this pin.
    pub fn new(pin: I) -> Self {
        Self(Arc::new(Mutex::new(pin)))
    }

    /// Keeps polls away until the guard is dropped.
    pub(super) fn hold(&self) -> MutexGuard<'_, I> {
        // A pin has no state of its own that a panic could have left half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<I> Clone for LastLine<I> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<I: ErrorType> ErrorType for LastLine<I> {
    type Error = I::Error;
}

impl<I: InputPin> InputPin for LastLine<I> {
    fn is_high(&mut self) -> Result<bool, I::Error> {
        self.hold().is_high()
    }

    fn is_low(&mut self) -> Result<bool, I::Error> {
        self.hold().is_low()
    }
}

/// The release of a channel: a line of its own, or the one that is shared with the replies.
#[derive(Debug, Clone)]
pub enum ReleaseLine<I> {
    /// Only this channel's.
    Own(I),
    /// The last channel's.
    Shared(LastLine<I>),
}

impl<I: ErrorType> ErrorType for ReleaseLine<I> {
    type Error = I::Error;
}

impl<I: InputPin> InputPin for ReleaseLine<I> {
    fn is_high(&mut self) -> Result<bool, I::Error> {
        match self {
            Self::Own(line) => line.is_high(),
            Self::Shared(line) => line.is_high(),
        }
    }

    fn is_low(&mut self) -> Result<bool, I::Error> {
        self.is_high().map(|high| !high)
    }
}

/// The line that is shared with the replies wakes no sleeper, because a sleeper would have to hold it.
impl<I: InputEvents> InputEvents for ReleaseLine<I> {
    fn wakes_sleepers(&mut self) -> bool {
        match self {
            Self::Own(line) => line.wakes_sleepers(),
            Self::Shared(_) => false,
        }
    }

    fn arm(&mut self) -> Result<(), I::Error> {
        match self {
            Self::Own(line) => line.arm(),
            Self::Shared(_) => Ok(()),
        }
    }

    fn sleep_until_edge(&mut self, awaited: PinState, limit: Duration) -> Result<(), I::Error> {
        match self {
            Self::Own(line) => line.sleep_until_edge(awaited, limit),
            Self::Shared(_) => Ok(()),
        }
    }
}
