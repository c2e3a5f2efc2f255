//! The release line of the fifth channel, shared by threads:
//! it carries the reply while this node's programming session is open.
//!
//! The thread that polls the channel and the thread that uses the programmer may differ.
//! A lock gives the line to one of them at a time.
//! A session holds the lock from before select rises until after select has fallen,
//! so no poll reads a bit of a reply as a release.
//! If both are on one thread, as on a microcontroller,
//! [`LocalLine`](super::LocalLine) needs no lock.

use super::ReplyLine;
use crate::InputEvents;
use core::time::Duration;
use embedded_hal::digital::{ErrorType, InputPin, PinState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The shared status line; all clones refer to the same line.
#[derive(Debug)]
pub struct LastLine<I>(Arc<Mutex<I>>);

impl<I> LastLine<I> {
    /// Returns the shared line that this pin reads.
    pub fn new(pin: I) -> Self {
        Self(Arc::new(Mutex::new(pin)))
    }

    /// Locks the line, so that polls wait until the guard is dropped.
    fn lock(&self) -> MutexGuard<'_, I> {
        // A pin has no state that a panic could leave inconsistent.
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
        self.lock().is_high()
    }

    fn is_low(&mut self) -> Result<bool, I::Error> {
        self.lock().is_low()
    }
}

impl<I: InputPin> ReplyLine for LastLine<I> {
    type Pin = I;

    fn hold<T>(&self, session: impl FnOnce(&mut I) -> T) -> T {
        session(&mut self.lock())
    }
}

/// The release line of a channel, either dedicated or shared with the replies.
#[derive(Debug, Clone)]
pub enum ReleaseLine<I> {
    /// A line that only this channel uses.
    Own(I),
    /// The last channel's line, which also carries the replies.
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

/// The shared line wakes no sleeper, because a sleeping process would have to hold the lock.
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
