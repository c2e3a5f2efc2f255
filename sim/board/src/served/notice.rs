//! Notices for the server's log: clients that connect, disconnect or fail.

use super::frame::Refusal;
use std::fmt;
use std::net::SocketAddr;

/// A notice for the server's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// A node has connected.
    Joined {
        /// The node that has connected.
        node: usize,
        /// The peer's address.
        peer: SocketAddr,
    },
    /// A node has disconnected.
    Left {
        /// The node that has disconnected.
        node: usize,
        /// The peer's address.
        peer: SocketAddr,
    },
    /// A node's connection has ended without a disconnect message, and its wire is idle again.
    Died {
        /// The node whose connection has ended.
        node: usize,
        /// The peer's address.
        peer: SocketAddr,
        /// The reason why the connection ended.
        how: Ended,
        /// True if the node had entered a barrier that was not yet released.
        inside: bool,
        /// The level of the node's wire now; `None` if it has several lines (version 2).
        level: Option<bool>,
    },
    /// A client was rejected.
    Refused {
        /// The peer's address.
        peer: SocketAddr,
        /// The reason that the server sent to the client.
        why: Refusal,
    },
    /// A client used another version of the protocol, or another protocol.
    Foreign {
        /// The peer's address.
        peer: SocketAddr,
        /// The client's protocol version; `None` if it uses another protocol.
        version: Option<u8>,
        /// The protocol version that this server's board requires.
        ours: u8,
    },
}

/// The reason why a connection ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// The peer closed the connection.
    Closed,
    /// The system reported this error of the connection.
    Broken(String),
    /// The peer violated the protocol.
    Malformed,
    /// The peer did not read the replies sent to it.
    Deaf,
    /// The peer held the serial receiver without using it while other nodes waited for it.
    Silent,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("closed its connection without a disconnect message"),
            Self::Broken(cause) => write!(f, "lost its connection: {cause}"),
            Self::Malformed => f.write_str("sent a request that means nothing"),
            Self::Deaf => f.write_str("did not read its answers"),
            Self::Silent => f.write_str("stopped in the middle of programming while others waited"),
        }
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Joined { node, peer } => write!(f, "node {node} has joined from {peer}"),
            Self::Left { node, peer } => write!(f, "node {node} has left, from {peer}"),
            Self::Died {
                node,
                peer,
                how,
                inside,
                level,
            } => {
                write!(f, "node {node} has died, from {peer}: it {how}; ")?;
                if *inside {
                    write!(f, "its arrival is withdrawn and ")?;
                }
                match level {
                    Some(true) => write!(f, "its wire is high, idle"),
                    Some(false) => write!(f, "its wire is low, idle"),
                    None => write!(f, "its lines rest"),
                }
            }
            Self::Refused { peer, why } => write!(f, "{peer} was rejected: {why}"),
            Self::Foreign {
                peer,
                version: Some(version),
                ours,
            } => write!(
                f,
                "{peer} was rejected: it speaks version {version} and this server version {ours}"
            ),
            Self::Foreign {
                peer,
                version: None,
                ..
            } => write!(f, "{peer} was rejected: it speaks another protocol"),
        }
    }
}
