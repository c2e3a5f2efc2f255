//! Errors of opening a port, with messages for the user; wires and register blocks share them.

use core::{error::Error, fmt};

/// The reason why [`open`](crate::ports::open) failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PortError {
    /// No port has this name.
    Unknown {
        /// The port's name in the text.
        name: String,
        /// The names of all ports.
        known: Vec<&'static str>,
    },
    /// The text is not valid for this port.
    Text {
        /// The whole text.
        text: String,
        /// The error in the text.
        why: String,
        /// The expected syntax.
        syntax: &'static str,
    },
    /// This build lacks the port.
    NotBuilt {
        /// The port's name.
        name: &'static str,
        /// The feature or target that the build requires.
        needs: &'static str,
    },
    /// The process lacks a permission.
    Forbidden {
        /// The port, as named in messages.
        port: String,
        /// The action by which the user can get the permission.
        remedy: &'static str,
    },
    /// The kernel has no support for this kind of port.
    Unsupported {
        /// The port, as named in messages.
        port: String,
        /// The kernel support that the port requires.
        needs: &'static str,
    },
    /// Another program has claimed the port.
    Busy {
        /// The port, as named in messages.
        port: String,
        /// The probable holder of the port.
        holder: &'static str,
    },
    /// No hardware was detected at this address.
    Absent {
        /// The port, as named in messages.
        port: String,
        /// The observation that shows the absence.
        sign: &'static str,
    },
    /// The system reported an error for which this enum has no other variant.
    Refused {
        /// The port, as named in messages.
        port: String,
        /// The step of opening the port that failed.
        step: &'static str,
        /// The error that the system reported.
        cause: String,
    },
}

impl fmt::Display for PortError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { name, known } => {
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
