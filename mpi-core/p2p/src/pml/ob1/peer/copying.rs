//! The state of the copy methods between this process and a peer: single copy by one side,
//! and cooperative copy by both sides.

use std::cell::Cell;

pub struct Copying {
    /// Set to false permanently when the system refuses the first single copy.
    single: Cell<bool>,
    /// Set to false permanently when one side could not copy its part.
    cooperative: Cell<bool>,
    /// The number of messages announced to the peer that the peer has not answered.
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

    /// Returns true if one side can read the other side's memory directly.
    #[inline]
    pub fn is_single_possible(&self) -> bool {
        self.single.get()
    }

    /// Disables single copies, after the system refused one.
    pub fn forbid_single(&self) {
        self.single.set(false);
    }

    /// Returns true if a cooperative copy is useful: no earlier cooperative copy has failed,
    /// and the peer has no message of this process to copy at the same time.
    pub fn is_cooperative_worth_it(&self) -> bool {
        self.announced.get() == 0 && self.cooperative.get()
    }

    /// Disables cooperative copies, after one side could not copy its part.
    pub fn forbid_cooperative(&self) {
        self.cooperative.set(false);
    }

    /// Counts up: a message was announced to the peer.
    pub fn announces(&self) {
        self.announced.set(self.announced.get() + 1);
    }

    /// Counts down: an announced message was answered or cancelled.
    pub fn was_answered(&self) {
        self.announced.set(self.announced.get().saturating_sub(1));
    }
}
