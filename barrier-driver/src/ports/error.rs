//! Errors of opening a port and of accessing an open one.

use super::PORTS;
use core::{error::Error, fmt};
use rustix::io::Errno;

/// Why an access to a port failed; created without allocation, because it may be created in a signal handler.
#[derive(Debug)]
pub(super) enum Failure {
    Kernel(Errno),
    #[cfg(all(target_os = "linux", feature = "gpio"))]
    Gpio(gpiocdev::Error),
    /// The other end of the connection has closed.
    Gone,
    /// Another access was in progress when the process ended.
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

/// Why [`open`](super::open) fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PortError {
    /// No port has this name.
    Unknown {
        /// The name in the text.
        name: String,
    },
    /// The text is not valid for this port.
    Text {
        /// The whole text.
        text: String,
        /// What is wrong with it.
        why: String,
        /// The expected syntax.
        syntax: &'static str,
    },
    /// This build lacks the port.
    NotBuilt {
        /// The port's name.
        name: &'static str,
        /// What the build requires.
        needs: &'static str,
    },
    /// The process lacks a permission.
    Forbidden {
        /// The port, as named in messages.
        port: String,
        /// How to get the permission.
        remedy: &'static str,
    },
    /// The kernel has no support for this kind of port.
    Unsupported {
        /// The port, as named in messages.
        port: String,
        /// What the kernel would need.
        needs: &'static str,
    },
    /// Another program has claimed the port.
    Busy {
        /// The port, as named in messages.
        port: String,
        /// The probable holder.
        holder: &'static str,
    },
    /// No hardware was detected at this address.
    Absent {
        /// The port, as named in messages.
        port: String,
        /// How that was detected.
        sign: &'static str,
    },
    /// Any other error.
    Refused {
        /// The port, as named in messages.
        port: String,
        /// The step that failed.
        step: &'static str,
        /// The error.
        cause: String,
    },
}

impl fmt::Display for PortError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { name } => {
                let known: Vec<_> = PORTS.iter().map(|kind| kind.name).collect();
                write!(
                    f,
                    "there is no port \"{name}\"; there are {}",
                    known.join(", ")
                )
            }
            Self::Text { text, why, syntax } => {
                write!(
                    f,
                    "the port \"{text}\" cannot be understood: {why}; it is written {syntax}"
                )
            }
            Self::NotBuilt { name, needs } => {
                write!(
                    f,
                    "the port {name} is not in this build, which lacks {needs}"
                )
            }
            Self::Forbidden { port, remedy } => {
                write!(
                    f,
                    "this process has no right to use {port}: it needs {remedy}"
                )
            }
            Self::Unsupported { port, needs } => {
                write!(f, "the kernel gives no access to {port}: it lacks {needs}")
            }
            Self::Busy { port, holder } => write!(f, "{port} is in use by {holder}"),
            Self::Absent { port, sign } => write!(f, "nothing answers at {port}: {sign}"),
            Self::Refused { port, step, cause } => {
                write!(f, "{port} cannot be used, it refused to {step}: {cause}")
            }
        }
    }
}

impl Error for PortError {}

/// An open port failed to read or drive a wire.
///
/// `Debug` prints the message too, because the driver's errors know only that a pin's error is `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct WireError {
    /// The wire, as named in messages.
    pub wire: String,
    /// The error of the port.
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
