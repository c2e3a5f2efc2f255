//! Why a port cannot be opened, and why an open one refuses an access.

use super::PORTS;
use core::{error::Error, fmt};
use rustix::io::Errno;

/// What a port's access fails with; made without memory, for it may be made in a signal handler.
#[derive(Debug)]
pub(super) enum Failure {
    Kernel(Errno),
    #[cfg(all(target_os = "linux", feature = "gpio"))]
    Gpio(gpiocdev::Error),
    /// The other end is not there any more.
    Gone,
    /// At the end of the process, another access was in progress.
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

/// Why [`open`](super::open) refuses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PortError {
    /// No port has this name.
    Unknown {
        /// The name in the text.
        name: String,
    },
    /// The text does not say what this port needs.
    Text {
        /// The whole text.
        text: String,
        /// What is wrong with it.
        why: String,
        /// How it should look.
        syntax: &'static str,
    },
    /// This build lacks the port.
    NotBuilt {
        /// The port's name.
        name: &'static str,
        /// What the build would need.
        needs: &'static str,
    },
    /// The process lacks a right.
    Forbidden {
        /// The port, as people know it.
        port: String,
        /// What gives the right.
        remedy: &'static str,
    },
    /// The kernel has no support for this kind of port.
    Unsupported {
        /// The port, as people know it.
        port: String,
        /// What the kernel would need.
        needs: &'static str,
    },
    /// Another program has claimed the port.
    Busy {
        /// The port, as people know it.
        port: String,
        /// Which one that may be.
        holder: &'static str,
    },
    /// There is no hardware at this place.
    Absent {
        /// The port, as people know it.
        port: String,
        /// How that shows.
        sign: &'static str,
    },
    /// Any other refusal.
    Refused {
        /// The port, as people know it.
        port: String,
        /// What was asked for.
        step: &'static str,
        /// What the answer was.
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

/// An open port refused to read or drive a wire.
///
/// `Debug` is the sentence too, since the driver's errors know no more of a pin's error than that.
#[derive(Clone, PartialEq, Eq)]
pub struct WireError {
    /// The wire, as people know it.
    pub wire: String,
    /// What the port answered.
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
