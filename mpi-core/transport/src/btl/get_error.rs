//! The error of a direct access to a peer's memory.

use std::fmt;

/// The reason why a peer's memory could not be read or written; the caller then uses fragments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GetError {
    /// The system forbids the call (container, ptrace scope) or does not support it.
    Forbidden,
    /// The peer has ended.
    PeerGone,
    /// The address range is not mapped in the peer.
    BadAddress,
    /// The transport has no space for another operation at present.
    Busy,
}

impl fmt::Display for GetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            GetError::Forbidden => "the system does not allow reading or writing the peer's memory",
            GetError::PeerGone => "the peer has ended",
            GetError::BadAddress => "the range is not mapped in the peer",
            GetError::Busy => "the transport has no space for another operation now",
        })
    }
}

impl std::error::Error for GetError {}
