//! Retired blocks: their owner no longer uses them, but other processes may still read them.

use super::ShmBlock;
use std::cell::RefCell;

/// A function that returns true when no process reads the block any more.
type IsOver = Box<dyn Fn() -> bool>;

/// Retired blocks that are freed when their last readers have finished.
#[derive(Default)]
pub struct RetiredBlocks(RefCell<Vec<(ShmBlock, IsOver)>>);

impl RetiredBlocks {
    /// Adds a block; the first `sweep` after `is_over` returns true frees the block.
    pub fn push(&self, block: ShmBlock, is_over: impl Fn() -> bool + 'static) {
        self.0.borrow_mut().push((block, Box::new(is_over)));
        self.sweep();
    }

    /// Frees the blocks that no process reads any more.
    pub fn sweep(&self) {
        self.0.borrow_mut().retain(|(_, is_over)| !is_over());
    }
}

impl Drop for RetiredBlocks {
    fn drop(&mut self) {
        self.sweep();
        for (block, _) in self.0.take() {
            // This process ends before its readers; the blocks are freed with the job's segment.
            block.abandon();
        }
    }
}
