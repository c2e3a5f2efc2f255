//! The state of a communicator's agreements.
//!
//! Agreements are numbered when they are called or started, in the same order on all members, and run one after another.

use super::node_agreement::Memory;
use mpi_transport::btl::ProcId;
use std::cell::{Cell, Ref, RefCell};

#[derive(Default)]
pub(crate) struct CommAgreements {
    /// The number of agreements that have begun; `ended` counts those that have ended. Both are equal on all members.
    begun: Cell<u64>,
    ended: Cell<u64>,
    /// The members that earlier agreements have found dead, the same on all members.
    left_out: RefCell<Vec<ProcId>>,
    memory: Memory,
}

impl CommAgreements {
    /// Begins the next agreement. Returns its number.
    pub(crate) fn begin(&self) -> u64 {
        let number = self.begun.get();
        self.begun.set(number + 1);
        number
    }

    /// Returns true if all agreements before this one have ended.
    pub(crate) fn is_up(&self, number: u64) -> bool {
        self.ended.get() == number
    }

    /// Ends an agreement. Returns true if later agreements wait for its end.
    pub(crate) fn end(&self, number: u64) -> bool {
        self.ended.set(number + 1);
        self.begun.get() > number + 1
    }

    /// Returns true if no agreement is in progress.
    pub(crate) fn is_idle(&self) -> bool {
        self.begun == self.ended
    }

    /// Returns the members that earlier agreements have found dead.
    pub(crate) fn left_out(&self) -> Ref<'_, Vec<ProcId>> {
        self.left_out.borrow()
    }

    /// Replaces the list of members that earlier agreements have found dead.
    pub(crate) fn leave_out(&self, dead: Vec<ProcId>) {
        self.left_out.replace(dead);
    }

    /// Returns the state of the shared memory in which the members agree.
    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }
}
