//! Why a node's memory could not be made, joined or used, in sentences.

use std::fmt;

use rustix::io::Errno;

use super::layout::MAX_LOCAL;

/// Why a node could not be made or joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeError {
    /// The number of ranks, or the sizes given with it, have no layout; the process that makes the memory finds this, and again each process that joins it.
    Sizes {
        /// The ranks wanted on this node; 0 and more than [`MAX_LOCAL`] are never possible.
        nlocal: u32,
    },
    /// The system gave no memory file: descriptors are used up, or a limit on file sizes is lower.
    Create {
        /// Of addresses; memory itself is taken only when it is touched.
        bytes: usize,
        /// What `memfd_create` or `ftruncate` answered.
        error: Errno,
    },
    /// The file does not fit into this process's addresses (`ulimit -v`), or is shorter than its head says.
    Map {
        /// How much was to be mapped.
        bytes: usize,
        /// What `mmap` answered; `EINVAL` for a file that is too short.
        error: Errno,
    },
    /// The descriptor is something else, or a file without a node's head at its start.
    NotANode,
    /// Launcher and library are of different builds; nothing but the number was read.
    Version {
        /// The version in the memory's head.
        found: u32,
        /// That of this library.
        ours: u32,
    },
    /// A local rank was asked for that this node has not.
    NoSuchRank {
        /// The rank asked for, counted from 0.
        rank: u32,
        /// How many ranks the memory was made for.
        nlocal: u32,
    },
    /// A process has joined under this rank before and its place is not given again, even if it has ended.
    Claimed {
        /// The local rank both want.
        rank: u32,
        /// The process that came first.
        pid: u32,
    },
    /// An end of a ring is handed out once, and has been.
    Taken {
        /// Which end it is, as the subject of "… is in use already".
        what: &'static str,
        /// The local rank that writes the ring.
        from: u32,
        /// The local rank that reads the ring.
        to: u32,
    },
    /// A rank's pool of fragments is handed out once, and has been.
    PoolTaken {
        /// The local rank whose pool it is.
        rank: u32,
    },
}

impl fmt::Display for NodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NodeError::Sizes { nlocal } => write!(
                f,
                "shared memory for {nlocal} ranks on one node cannot be laid out (at most {MAX_LOCAL} ranks)"
            ),
            NodeError::Create {
                bytes,
                error: Errno::FBIG,
            } => {
                let limit = crate::mem::file_limit().unwrap_or(u64::MAX);
                write!(
                    f,
                    "the memory that ranks share is a file of at least {bytes} bytes, and files may have {limit} (ulimit -f); raise the limit"
                )
            }
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
            NodeError::Version { found, ours } => write!(
                f,
                "the node's shared memory was made by another version ({found}, we are {ours})"
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
            NodeError::PoolTaken { rank } => {
                write!(
                    f,
                    "the fragment pool of local rank {rank} is in use already"
                )
            }
        }
    }
}

impl std::error::Error for NodeError {}
