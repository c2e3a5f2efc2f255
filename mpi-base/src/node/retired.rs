//! Blocks that their owner does not need any more while other processes still look at them.

use super::ShmBlock;
use std::cell::RefCell;

/// Whether no process looks at a block any more.
type IsOver = Box<dyn Fn() -> bool>;

/// Blocks that wait for their last users.
#[derive(Default)]
pub struct RetiredBlocks(RefCell<Vec<(ShmBlock, IsOver)>>);

impl RetiredBlocks {
    /// Takes a block, to be returned when it `is_over`.
    pub fn push(&self, block: ShmBlock, is_over: impl Fn() -> bool + 'static) {
        self.0.borrow_mut().push((block, Box::new(is_over)));
        self.sweep();
    }

    /// Returns the blocks at which no process looks any more.
    pub fn sweep(&self) {
        self.0.borrow_mut().retain(|(_, is_over)| !is_over());
    }
}

impl Drop for RetiredBlocks {
    fn drop(&mut self) {
        self.sweep();
        for (block, _) in self.0.take() {
            // This process ends before its peers have looked; the memory goes with the job.
            block.abandon();
        }
    }
}
