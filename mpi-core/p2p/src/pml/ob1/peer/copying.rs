//! How messages between this process and a peer can be copied: in one copy, and by both sides at once.

use std::cell::Cell;

pub struct Copying {
    /// Cleared for good when the system refuses the first single copy.
    single: Cell<bool>,
    /// Cleared for good when one side could not do its part of a copy.
    cooperative: Cell<bool>,
    /// Messages that the peer has been told of and has not begun to take.
    announced: Cell<u32>,
}

impl Copying {
    /// Whether the transport knows single copies.
    pub(super) fn new(single: bool) -> Copying {
        Copying {
            single: Cell::new(single),
            cooperative: Cell::new(true),
            announced: Cell::new(0),
        }
    }

    /// Whether one side may read the other's memory.
    #[inline]
    pub fn is_single_possible(&self) -> bool {
        self.single.get()
    }

    /// The system forbids it.
    pub fn forbid_single(&self) {
        self.single.set(false);
    }

    /// Whether both sides may work on one copy: no earlier one has failed, and the peer has nothing of ours to copy meanwhile.
    pub fn is_cooperative_worth_it(&self) -> bool {
        self.announced.get() == 0 && self.cooperative.get()
    }

    /// One side could not do its part.
    pub fn forbid_cooperative(&self) {
        self.cooperative.set(false);
    }

    /// The peer has been told of a message.
    pub fn announces(&self) {
        self.announced.set(self.announced.get() + 1);
    }

    /// A message that it was told of is not waiting any more.
    pub fn was_answered(&self) {
        self.announced.set(self.announced.get().saturating_sub(1));
    }
}
