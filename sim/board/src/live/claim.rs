//! The claim of a node's wires, by which the wires belong to one process at a time.
//!
//! If a process dies without releasing its claim, another process can take the claim over.

use core::sync::atomic::{AtomicU32, Ordering};
use rustix::process::{Pid, getpid, test_kill_process};
use std::fmt;

/// The reason why the wires of a node are unavailable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WiresError {
    /// The board has no such node.
    NoSuchNode {
        /// The requested node.
        node: usize,
        /// The board's number of nodes.
        nodes: usize,
    },
    /// A living process holds the wires.
    Taken {
        /// The requested node.
        node: usize,
        /// The process that holds the wires.
        pid: u32,
    },
}

impl fmt::Display for WiresError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchNode { node, nodes } => {
                write!(
                    f,
                    "the board has no node {node}: its {nodes} nodes count from 0"
                )
            }
            Self::Taken { node, pid } => {
                write!(f, "the wires of node {node} are in use by process {pid}")
            }
        }
    }
}

impl std::error::Error for WiresError {}

/// This process's claim of a node's slots, released with the last handle.
#[derive(Debug)]
pub(super) struct Claim<'m> {
    word: &'m AtomicU32,
    me: u32,
}

#[cfg(test)]
impl<'m> Claim<'m> {
    /// Returns a claim without an owner; dropping this claim changes nothing.
    pub(super) fn by_no_process(word: &'m AtomicU32) -> Self {
        Self { word, me: 0 }
    }
}

impl<'m> Claim<'m> {
    pub(super) fn take(word: &'m AtomicU32, node: usize) -> Result<Self, WiresError> {
        let me = getpid().as_raw_nonzero().get().unsigned_abs();
        let mut holder = 0;
        loop {
            // Acquire pairs with the Release of `drop`: the previous owner has finished with the slots.
            match word.compare_exchange(holder, me, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Ok(Self { word, me }),
                Err(other) if other != 0 && is_alive(other) => {
                    return Err(WiresError::Taken { node, pid: other });
                }
                // The owner has released the claim, or is dead and will never write the slots.
                // The next exchange replaces exactly that owner.
                Err(other) => holder = other,
            }
        }
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        // After a fork the child drops a copy of this claim,
        // which must not release the parent's claim.
        if getpid().as_raw_nonzero().get().unsigned_abs() == self.me {
            let _ = self
                .word
                .compare_exchange(self.me, 0, Ordering::Release, Ordering::Relaxed);
        }
    }
}

/// Returns true if the process exists.
pub(super) fn is_alive(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    // EPERM means that the process exists and belongs to another user.
    pid.is_some_and(|pid| test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}
