//! What the server says in its log: which guest came, which went, and how.

use super::frame::Refusal;
use std::fmt;
use std::net::SocketAddr;

/// Something worth a line of the server's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// A node has connected.
    Joined {
        /// Which.
        node: usize,
        /// From where.
        peer: SocketAddr,
    },
    /// A node has said goodbye.
    Left {
        /// Which.
        node: usize,
        /// From where it was connected.
        peer: SocketAddr,
    },
    /// A node's connection has ended without a goodbye, and its wire is idle again.
    Died {
        /// Which.
        node: usize,
        /// From where it was connected.
        peer: SocketAddr,
        /// How the connection ended.
        how: Ended,
        /// Whether it had entered a barrier that was not released.
        inside: bool,
        /// The level that its wire has now, if it has one wire.
        level: Option<bool>,
    },
    /// A guest that was turned away.
    Refused {
        /// From where.
        peer: SocketAddr,
        /// What it was told.
        why: Refusal,
    },
    /// A guest of another version, or of another protocol.
    Foreign {
        /// From where.
        peer: SocketAddr,
        /// Its version, if it speaks ours in some version.
        version: Option<u8>,
        /// The version of this server's board.
        ours: u8,
    },
}

/// How a connection ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// The other side closed it.
    Closed,
    /// The system reported this.
    Broken(String),
    /// What the other side sent was none of the protocol.
    Malformed,
    /// The other side did not read what it was sent.
    Deaf,
    /// The other side held the serial receiver, which others waited for, and did nothing with it.
    Silent,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("closed its connection without a goodbye"),
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
            Self::Refused { peer, why } => write!(f, "{peer} was turned away: {why}"),
            Self::Foreign {
                peer,
                version: Some(version),
                ours,
            } => write!(
                f,
                "{peer} was turned away: it speaks version {version} and this server version {ours}"
            ),
            Self::Foreign {
                peer,
                version: None,
                ..
            } => write!(f, "{peer} was turned away: it speaks another protocol"),
        }
    }
}
