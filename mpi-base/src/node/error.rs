//! Why a node's memory could not be made, joined or used, in sentences.

use std::fmt;

use rustix::io::Errno;

use super::head::VERSION;
use super::layout::MAX_LOCAL;

/// Why a node could not be made or joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeError {
    Sizes {
        nlocal: u32,
    },
    Create {
        bytes: usize,
        error: Errno,
    },
    Map {
        bytes: usize,
        error: Errno,
    },
    NotANode,
    Version {
        found: u32,
    },
    NoSuchRank {
        rank: u32,
        nlocal: u32,
    },
    Claimed {
        rank: u32,
        pid: u32,
    },
    Taken {
        what: &'static str,
        from: u32,
        to: u32,
    },
}

impl fmt::Display for NodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NodeError::Sizes { nlocal } => write!(
                f,
                "shared memory for {nlocal} ranks on one node cannot be laid out (at most {MAX_LOCAL} ranks)"
            ),
            NodeError::Create { bytes, error } => {
                write!(
                    f,
                    "a memory file of {bytes} bytes could not be made: {error}"
                )
            }
            NodeError::Map { bytes, error } => write!(
                f,
                "the node's shared memory ({bytes} bytes of addresses) could not be mapped: {error}"
            ),
            NodeError::NotANode => {
                write!(f, "the descriptor given is not a node's shared memory")
            }
            NodeError::Version { found } => write!(
                f,
                "the node's shared memory was made by another version ({found}, we are {VERSION})"
            ),
            NodeError::NoSuchRank { rank, nlocal } => {
                write!(f, "there is no local rank {rank} among {nlocal} ranks")
            }
            NodeError::Claimed { rank, pid } => {
                write!(f, "local rank {rank} is process {pid} already")
            }
            NodeError::Taken { what, from, to } => {
                write!(
                    f,
                    "the {what} of the ring from local rank {from} to {to} is in use already"
                )
            }
        }
    }
}

impl std::error::Error for NodeError {}
