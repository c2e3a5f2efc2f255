//! Errors of a client, one closed enum per operation;
//! every message names the server and the client.

use super::address::Address;
use super::frame::{CHANNELS_VERSION, Refusal, Role, VERSION};
use std::fmt;
use std::time::Duration;

/// The reason why a client cannot connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConnectError {
    /// The host's name cannot be resolved, or none of its addresses accepts connections.
    Unreachable {
        /// The server's address.
        server: Address,
        /// The error that the system reported.
        cause: String,
    },
    /// The server does not answer.
    TimedOut {
        /// The server's address.
        server: Address,
        /// The time limit for the connection.
        limit: Duration,
    },
    /// The process that listens at this address is not a board server.
    Foreign {
        /// The server's address.
        server: Address,
    },
    /// The server uses another protocol version.
    Version {
        /// The server's address.
        server: Address,
        /// The server's protocol version.
        theirs: u8,
        /// The required version; `None` if the client accepts any known version.
        ours: Option<u8>,
    },
    /// The board has another number of nodes.
    NodeCount {
        /// The server's address.
        server: Address,
        /// The server's number of nodes.
        theirs: usize,
        /// The number of nodes that the client requires.
        ours: usize,
    },
    /// The server rejects this client.
    Refused {
        /// The server's address.
        server: Address,
        /// The client: a node, or an observer.
        client: Role,
        /// The reason that the server sent.
        why: Refusal,
    },
    /// The connection ended before the server had answered.
    Lost {
        /// The server's address.
        server: Address,
        /// The error that the system reported.
        cause: String,
    },
}

/// The reason why a connected client can no longer reach its wires.
///
/// `Debug` also prints the message, because the driver's errors print a pin's error only by
/// `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub enum LineError {
    /// The connection has ended.
    Lost {
        /// The server's address.
        server: Address,
        /// The role of the client: a node, or an observer.
        client: Role,
        /// The error that the system reported.
        cause: String,
    },
    /// The server does not answer.
    TimedOut {
        /// The server's address.
        server: Address,
        /// The role of the client: a node, or an observer.
        client: Role,
        /// The time limit for the answer.
        limit: Duration,
    },
    /// The server sent bytes that violate the protocol.
    Malformed {
        /// The server's address.
        server: Address,
        /// The role of the client: a node, or an observer.
        client: Role,
    },
    /// The server rejected the client.
    Refused {
        /// The server's address.
        server: Address,
        /// The role of the client: a node, or an observer.
        client: Role,
        /// The reason that the server sent.
        why: Refusal,
    },
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable { server, cause } => {
                write!(f, "no board can be reached at {server}: {cause}")
            }
            Self::TimedOut { server, limit } => write!(
                f,
                "the program that listens at {server} has sent nothing for {limit:?}, so it is no server of a board"
            ),
            Self::Foreign { server } => {
                write!(f, "the program that listens at {server} serves no board")
            }
            Self::Version {
                server,
                theirs: CHANNELS_VERSION,
                ..
            } => write!(
                f,
                "the board at {server} is of version 2 (hwbarr serve --channels), and one of version 1 is needed"
            ),
            Self::Version {
                server,
                theirs: VERSION,
                ..
            } => write!(
                f,
                "the board at {server} is of version 1, and one of version 2 is needed: hwbarr serve --channels"
            ),
            Self::Version { server, theirs, .. } => write!(
                f,
                "the server at {server} speaks version {theirs} and this program version {VERSION}"
            ),
            Self::NodeCount {
                server,
                theirs,
                ours,
            } => write!(
                f,
                "the board at {server} has {theirs} nodes, and {ours} are needed: hwbarr serve --nodes {ours}"
            ),
            Self::Refused {
                server,
                client,
                why,
            } => write!(f, "the board at {server} does not take {client}: {why}"),
            Self::Lost { server, cause } => write!(
                f,
                "the connection to {server} ended before the board had answered: {cause}"
            ),
        }
    }
}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost {
                server,
                client,
                cause,
            } => write!(f, "{client} has lost its connection to {server}: {cause}"),
            Self::TimedOut {
                server,
                client,
                limit,
            } => write!(
                f,
                "the board at {server} has not answered {client} for {limit:?}: its process or its host has stopped, or the network is cut"
            ),
            Self::Malformed { server, client } => write!(
                f,
                "{client} has been sent bytes by {server} that mean nothing in version {VERSION}"
            ),
            Self::Refused {
                server,
                client,
                why,
            } => write!(f, "{client} was rejected by {server}: {why}"),
        }
    }
}

impl fmt::Debug for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for ConnectError {}
impl std::error::Error for LineError {}

impl embedded_hal::digital::Error for LineError {
    fn kind(&self) -> embedded_hal::digital::ErrorKind {
        embedded_hal::digital::ErrorKind::Other
    }
}
