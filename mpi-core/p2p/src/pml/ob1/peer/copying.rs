//! The methods of copying messages between this process and a peer: single copy by one side,
//! and cooperative copy by both sides.

use std::cell::Cell;

pub struct Copying {
    /// Cleared permanently when the system refuses the first single copy.
    single: Cell<bool>,
    /// Cleared permanently when one side could not copy its part.
    cooperative: Cell<bool>,
    /// The number of messages announced to the peer that the peer has not answered yet.
    announced: Cell<u32>,
}

impl Copying {
    /// Creates the state; `single` is true if the transport supports single copies.
    pub(super) fn new(single: bool) -> Copying {
        Copying {
            single: Cell::new(single),
            cooperative: Cell::new(true),
            announced: Cell::new(0),
        }
    }

    /// Returns true if one side may read the other's memory.
    #[inline]
    pub fn is_single_possible(&self) -> bool {
        self.single.get()
    }

    /// Disables single copies, which the system forbids.
    pub fn forbid_single(&self) {
        self.single.set(false);
    }

    /// Returns true if both sides may work on one copy: no earlier cooperative copy has failed, and the peer has no message of this process to copy meanwhile.
    pub fn is_cooperative_worth_it(&self) -> bool {
        self.announced.get() == 0 && self.cooperative.get()
    }

    /// Disables cooperative copies, after one side could not copy its part.
    pub fn forbid_cooperative(&self) {
        self.cooperative.set(false);
    }

    /// Counts a message that was announced to the peer.
    pub fn announces(&self) {
        self.announced.set(self.announced.get() + 1);
    }

    /// Removes an announced message that no longer waits for an answer.
    pub fn was_answered(&self) {
        self.announced.set(self.announced.get().saturating_sub(1));
    }
}
