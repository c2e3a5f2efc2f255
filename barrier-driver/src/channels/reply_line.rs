//! The trait of the status line on which a programmer reads replies, and its implementation for a single thread.

use core::cell::RefCell;
use embedded_hal::digital::{ErrorType, InputPin};

/// A line that carries replies and, between the sessions, the last channel's releases.
/// All clones refer to the same line.
///
/// Implementations: `LastLine` (feature `std`) shares the line between threads, [`LocalLine`] works on one thread.
/// Code that polls the release in an interrupt handler implements this trait with its critical section.
pub trait ReplyLine: ErrorType + Clone {
    /// The type of the line's pin.
    type Pin: InputPin<Error = Self::Error>;

    /// Calls `session` with the pin. Until `session` returns, reads through other clones do not access the pin.
    fn hold<T>(&self, session: impl FnOnce(&mut Self::Pin) -> T) -> T;
}

/// The line on a single thread, without a lock and without allocation: the pin is in the caller's cell.
///
/// The pin is borrowed during a whole session, so the programmer's delay must not poll the last channel.
#[derive(Debug)]
pub struct LocalLine<'a, I>(&'a RefCell<I>);

impl<'a, I> LocalLine<'a, I> {
    /// Returns the line whose pin is in this cell.
    pub const fn new(pin: &'a RefCell<I>) -> Self {
        Self(pin)
    }
}

impl<I> Clone for LocalLine<'_, I> {
    fn clone(&self) -> Self {
        Self(self.0)
    }
}

impl<I: ErrorType> ErrorType for LocalLine<'_, I> {
    type Error = I::Error;
}

impl<I: InputPin> InputPin for LocalLine<'_, I> {
    fn is_high(&mut self) -> Result<bool, I::Error> {
        self.hold(InputPin::is_high)
    }

    fn is_low(&mut self) -> Result<bool, I::Error> {
        self.hold(InputPin::is_low)
    }
}

impl<I: InputPin> ReplyLine for LocalLine<'_, I> {
    type Pin = I;

    fn hold<T>(&self, session: impl FnOnce(&mut I) -> T) -> T {
        session(&mut self.0.borrow_mut())
    }
}
