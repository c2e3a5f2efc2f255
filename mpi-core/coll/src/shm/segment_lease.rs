//! Giving shared memory back when no rank looks at it any more.
//!
//! A rank that has passed its last barrier may free the communicator while others have yet to look at the gate.
//! So every member says that it has left, in the first word of the block, and rank 0, whose memory it is,
//! returns the block when all have; until then it is among the [`RetiredBlocks`].

use super::members::LINE;
use mpi_base::atomic::{AtomicU64, Ordering};
use mpi_base::mem::Held;
use mpi_base::node::{RetiredBlocks, ShmBlock};
use std::cell::Cell;

/// One member's share in a block.
pub struct SegmentLease {
    left: Held<AtomicU64>,
    members: u64,
    /// At rank 0.
    block: Cell<Option<ShmBlock>>,
    /// Whether others may look at the block though this rank drops it.
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
    /// Rank 0 has the `block`; it `outlives` a lease that is dropped before it has ended, if members may use what they have not agreed on.
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

    /// Says that this rank does not look at the block any more; of one that is `untouched` only the first line has been written.
    pub fn end(&self, retired: &RetiredBlocks, untouched: bool) {
        let mut block = self.block.take();
        if let (Some(block), true) = (&mut block, untouched) {
            // Many communicators carry messages only, and giving the pages back is a third of making and freeing one.
            block.is_clean_behind(LINE);
        }
        // SYNC POINT shm.left: this rank's last look comes before.
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
