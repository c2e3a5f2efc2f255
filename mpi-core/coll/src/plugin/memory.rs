//! Memory that the members of a communicator on one node share, handed out to plugins.
//!
//! The lowest of them takes a block out of its arena and tells the others its place.
//! The block begins with a word of the host's own, the number of members that have not left it.
//! An arena's block may go back only when no member uses it any more, and members leave when they like;
//! so a block whose owner leaves early waits among the [`RetiredBlocks`] until the word is zero.

use mpi_base::atomic::{AtomicU32, Ordering};
use mpi_base::mem::Held;
use mpi_base::node::{RetiredBlocks, ShmBlock};
use std::cell::RefCell;
use std::rc::Rc;

/// The host's own words in front of shared memory that it hands out.
pub(super) const HEAD: usize = 64;

/// What one seat has taken.
pub(super) struct Memory {
    shares: RefCell<Vec<Share>>,
    retired: Rc<RetiredBlocks>,
}

/// A share of a block of memory that several processes use.
struct Share {
    /// How many of them have not left it.
    users: Held<AtomicU32>,
    /// The block, at the one that took it out of its arena.
    block: Option<ShmBlock>,
}

impl Memory {
    pub fn new(retired: &Rc<RetiredBlocks>) -> Memory {
        Memory {
            shares: RefCell::default(),
            retired: retired.clone(),
        }
    }

    /// Returns the blocks that every member has left meanwhile.
    pub fn sweep(&self) {
        self.retired.sweep();
    }

    /// From now on this seat has a share of a block, `block` at the seat that took it out of its arena.
    pub fn holds(&self, users: Held<AtomicU32>, block: Option<ShmBlock>) {
        self.shares.borrow_mut().push(Share { users, block });
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        for share in self.shares.take() {
            // SYNC POINT memory.left: what was written here is seen by the member that finds the block left by all.
            share.users.fetch_sub(1, Ordering::Release);
            if let Some(block) = share.block {
                // SYNC POINT memory.left
                let users = share.users;
                self.retired
                    .push(block, move || users.load(Ordering::Acquire) == 0);
            }
        }
        self.retired.sweep();
    }
}
