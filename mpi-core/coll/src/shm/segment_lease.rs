//! Release of a shared segment when no rank accesses it any more.
//!
//! A rank that has left its last barrier may free the communicator while other ranks still poll the barrier.
//! So every member increments a counter, the first word of the block, when it leaves.
//! Rank 0, which owns the memory,
//! frees the block when all members have left; until then the block is in [`RetiredBlocks`].

use mpi_base::atomic::{AtomicU64, Ordering};
use mpi_base::mem::Held;
use mpi_base::node::{RetiredBlocks, ShmBlock};
use std::cell::Cell;

/// A member's reference to the block of a segment.
pub struct SegmentLease {
    left: Held<AtomicU64>,
    members: u64,
    block: Cell<Option<ShmBlock>>,
    /// True if other members may access the block after this rank has dropped the lease.
    outlives: bool,
}

impl Drop for SegmentLease {
    fn drop(&mut self) {
        if let (true, Some(block)) = (self.outlives, self.block.take()) {
            block.abandon();
        }
    }
}

impl SegmentLease {
    /// Creates a lease; `block` is `Some` on rank 0.
    /// With `outlives`, a lease that is dropped without [`SegmentLease::end`] leaks the block,
    /// since the members have not agreed then, and some may still use the block.
    pub fn new(
        left: Held<AtomicU64>,
        (block, outlives): (Option<ShmBlock>, bool),
        members: u32,
    ) -> SegmentLease {
        SegmentLease {
            left,
            members: members.into(),
            block: Cell::new(block),
            outlives,
        }
    }

    /// Returns the length of the block in bytes on rank 0, and `None` on other ranks.
    pub fn len(&self) -> Option<usize> {
        let block = self.block.take();
        let len = block.as_ref().map(ShmBlock::len);
        self.block.set(block);
        len
    }

    /// Ends this rank's use of the block.
    /// If `used` is `Some`, only the first `used` bytes of the block have been written.
    pub fn end(&self, retired: &RetiredBlocks, used: Option<usize>) {
        let mut block = self.block.take();
        if let (Some(block), Some(used)) = (&mut block, used) {
            // Most of the time of freeing is spent on finding and returning the written pages,
            // and many communicators never touch the last part.
            block.is_clean_behind(used);
        }
        // SYNC POINT shm.left: this rank's last access happens before this increment.
        self.left.fetch_add(1, Ordering::Release);
        match block {
            None => retired.sweep(),
            Some(block) => {
                let (left, members) = (self.left.clone(), self.members);
                // SYNC POINT shm.left
                retired.push(block, move || left.load(Ordering::Acquire) >= members);
            }
        }
    }
}
