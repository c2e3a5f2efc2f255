//! What a communicator keeps for its agreements.
//!
//! They are numbered when they are called or started, in the same order at all members, and go one after another.

use super::node_agreement::Memory;
use mpi_transport::btl::ProcId;
use std::cell::{Cell, Ref, RefCell};

#[derive(Default)]
pub(crate) struct CommAgreements {
    /// How many have begun and how many have ended, equal at all members.
    begun: Cell<u64>,
    ended: Cell<u64>,
    /// Members that earlier ones have found dead, the same at all members.
    left_out: RefCell<Vec<ProcId>>,
    memory: Memory,
}

impl CommAgreements {
    /// The number of the next one, which begins.
    pub(crate) fn begin(&self) -> u64 {
        let number = self.begun.get();
        self.begun.set(number + 1);
        number
    }

    /// Whether all before this one have ended.
    pub(crate) fn is_up(&self, number: u64) -> bool {
        self.ended.get() == number
    }

    /// One ends; whether others wait for it.
    pub(crate) fn end(&self, number: u64) -> bool {
        self.ended.set(number + 1);
        self.begun.get() > number + 1
    }

    /// Whether none is under way.
    pub(crate) fn is_idle(&self) -> bool {
        self.begun == self.ended
    }

    /// Members that earlier ones have found dead.
    pub(crate) fn left_out(&self) -> Ref<'_, Vec<ProcId>> {
        self.left_out.borrow()
    }

    /// So many members are known to be dead now.
    pub(crate) fn leave_out(&self, dead: Vec<ProcId>) {
        self.left_out.replace(dead);
    }

    /// The memory in which the members agree, once they have found some.
    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }
}
