//! Shared memory of the members of a communicator on one node, allocated for plugins.
//!
//! The lowest rank of these members allocates a block from its arena
//! and sends the block's offset to the other members.
//! The block begins with a header that contains the number of members that use the block.
//! A block may be returned to its arena only when this number is zero, but members release the block at different times.
//! So if its owner releases it early, the block waits in [`RetiredBlocks`] until the number is zero.

use mpi_base::atomic::{AtomicU32, Ordering};
use mpi_base::mem::Held;
use mpi_base::node::{RetiredBlocks, ShmBlock};
use std::cell::RefCell;
use std::rc::Rc;

/// Size, in bytes, of the header in front of the plugin's memory.
pub(super) const HEAD: usize = 64;

/// All shared blocks of one module.
pub(super) struct Memory {
    shares: RefCell<Vec<Share>>,
    retired: Rc<RetiredBlocks>,
}

struct Share {
    /// The number of members that use the block, in the block's header.
    users: Held<AtomicU32>,
    block: Option<ShmBlock>,
}

impl Memory {
    pub fn new(retired: &Rc<RetiredBlocks>) -> Memory {
        Memory {
            shares: RefCell::default(),
            retired: retired.clone(),
        }
    }

    /// Frees the retired blocks that no member uses any more.
    pub fn sweep(&self) {
        self.retired.sweep();
    }

    /// Registers this module's reference to a block; `block` is `Some` on the process that allocated it.
    pub fn holds(&self, users: Held<AtomicU32>, block: Option<ShmBlock>) {
        self.shares.borrow_mut().push(Share { users, block });
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        for share in self.shares.take() {
            // SYNC POINT memory.left: this process's writes to the block happen before the owner frees the block.
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
