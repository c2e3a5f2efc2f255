//! Blocks that their owner has retired while other processes may still read them.

use super::ShmBlock;
use std::cell::RefCell;

/// A check that returns true when no process reads the block any more.
type IsOver = Box<dyn Fn() -> bool>;

/// Retired blocks that wait for their last users.
#[derive(Default)]
pub struct RetiredBlocks(RefCell<Vec<(ShmBlock, IsOver)>>);

impl RetiredBlocks {
    /// Adds a block, which is freed once `is_over` returns true.
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
            // This process ends before its peers have finished reading; the memory is released with the job's segment.
            block.abandon();
        }
    }
}
