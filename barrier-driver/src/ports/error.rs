//! Errors of accesses to an open port.

use core::{error::Error, fmt};
use rustix::io::Errno;

/// The cause of a failed access to a port.
/// The type allocates no memory, because a signal handler may create a value.
#[derive(Debug)]
pub(super) enum Failure {
    Kernel(Errno),
    #[cfg(all(target_os = "linux", feature = "gpio"))]
    Gpio(gpiocdev::Error),
    /// The connection to the lines has been closed by its other end.
    Gone,
    /// Another access was in progress when the process ended, so this one was not made.
    #[cfg_attr(not(feature = "rppal"), allow(dead_code))]
    InUse,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kernel(errno) => errno.fmt(f),
            #[cfg(all(target_os = "linux", feature = "gpio"))]
            Self::Gpio(error) => error.fmt(f),
            Self::Gone => f.write_str("its board is gone"),
            Self::InUse => f.write_str("another thread is using the wire"),
        }
    }
}

impl From<Errno> for Failure {
    fn from(errno: Errno) -> Self {
        Self::Kernel(errno)
    }
}

/// The error of an open port that could not read or drive a wire.
///
/// `Debug` prints the message, too: the driver's errors require only `Debug` of a pin's
/// error.
#[derive(Clone, PartialEq, Eq)]
pub struct WireError {
    /// The wire, as named in messages.
    pub wire: String,
    /// The error that the port reported.
    pub cause: String,
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed: {}", self.wire, self.cause)
    }
}

impl fmt::Debug for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error for WireError {}

impl embedded_hal::digital::Error for WireError {
    fn kind(&self) -> embedded_hal::digital::ErrorKind {
        embedded_hal::digital::ErrorKind::Other
    }
}
