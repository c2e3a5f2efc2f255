//! Errors of creating, joining or using a node's memory, and their messages.

use std::fmt;

use rustix::io::Errno;

use super::layout::MAX_LOCAL;

/// The reason why a node's memory could not be created or joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeError {
    /// No layout exists for this number of ranks or for these sizes.
    /// The process that creates the memory checks these numbers,
    /// and each process that joins checks them again.
    Sizes {
        /// The number of ranks requested; 0 and more than [`MAX_LOCAL`] have no layout.
        nlocal: u32,
    },
    /// The kernel refused to create the memory file:
    /// the process has no free descriptor, or a limit on file sizes is too low.
    Create {
        /// The length of the file in bytes; memory is allocated only on access.
        bytes: usize,
        /// The error of `memfd_create` or `ftruncate`.
        error: Errno,
    },
    /// The file does not fit into this process's address space (`ulimit -v`),
    /// or is shorter than its header requires.
    Map {
        /// The number of bytes to be mapped.
        bytes: usize,
        /// The error of `mmap`; `EINVAL` for a file that is too short.
        error: Errno,
    },
    /// The descriptor is not a memory file,
    /// or the file does not begin with the header of a node's memory.
    NotANode,
    /// The launcher and the library are from different builds; only the version number was read.
    Version {
        /// The version in the memory's header.
        found: u32,
        /// The version of this library.
        ours: u32,
    },
    /// The requested local rank does not exist on this node.
    NoSuchRank {
        /// The requested local rank, counted from 0.
        rank: u32,
        /// The number of ranks for which the memory was created.
        nlocal: u32,
    },
    /// Another process has claimed this rank. In this memory, a rank is never reassigned, even after a death.
    Claimed {
        /// The local rank that both processes requested.
        rank: u32,
        /// The ID of the process that claimed the rank first.
        pid: u32,
    },
    /// This end of a ring has already been taken; each end can be taken only one time.
    Taken {
        /// The name of the ring's end, as the subject of "… is in use already".
        what: &'static str,
        /// The local rank that writes the ring.
        from: u32,
        /// The local rank that reads the ring.
        to: u32,
    },
    /// The rank's pool of fragments has already been taken; it can be taken only one time.
    PoolTaken {
        /// The local rank that owns the pool.
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
