//! The failure state of a communicator; empty until a failure is known.

use super::{Comm, WeakComm};
use crate::fault::{CommAgreements, FaultError};
use std::cell::{Cell, RefCell};

#[derive(Default)]
pub(super) struct FailureState {
    flags: Cell<u8>,
    acknowledged: Cell<usize>,
    agreements: CommAgreements,
    /// True if another member has revoked the communicator while revocations are deferred; `None` if they are not.
    deferred: Cell<Option<bool>>,
    /// The error of the parent communicator, if this communicator fails because of it.
    outer: RefCell<Option<FaultError>>,
    /// The communicators that fail when this one fails.
    parts: RefCell<Vec<WeakComm>>,
}

impl FailureState {
    pub(super) const REVOKED: u8 = 1;
    pub(super) const FAILED: u8 = 2;

    /// Returns true if no failure or revocation is known.
    #[inline(always)]
    pub(super) fn is_none(&self) -> bool {
        self.flags.get() == 0
    }

    pub(super) fn has(&self, flag: u8) -> bool {
        self.flags.get() & flag != 0
    }

    pub(super) fn add(&self, flag: u8) {
        self.flags.set(self.flags.get() | flag);
    }

    pub(super) fn remove(&self, flag: u8) {
        self.flags.set(self.flags.get() & !flag);
    }

    /// From now on, [`FailureState::defers_revocation`] records revocations. One that is known already is recorded instead.
    pub(super) fn defer_revocation(&self) {
        self.deferred.set(Some(self.has(FailureState::REVOKED)));
        self.remove(FailureState::REVOKED);
    }

    /// Records a revocation and returns true if revocations are deferred.
    pub(super) fn defers_revocation(&self) -> bool {
        let are_deferred = self.deferred.get().is_some();
        if are_deferred {
            self.deferred.set(Some(true));
        }
        are_deferred
    }

    /// Ends the deferral. Returns true if a revocation was recorded.
    pub(super) fn take_deferred(&self) -> bool {
        self.deferred.take().unwrap_or(false)
    }

    pub(super) fn agreements(&self) -> &CommAgreements {
        &self.agreements
    }

    /// Returns the number of failures that the program has acknowledged.
    pub(super) fn acknowledged(&self) -> usize {
        self.acknowledged.get()
    }

    /// Acknowledges the first `failures` failures. Returns the number of acknowledged failures.
    pub(super) fn acknowledge(&self, failures: usize) -> usize {
        self.acknowledged.set(self.acknowledged.get().max(failures));
        self.acknowledged.get()
    }

    /// Returns the error of the parent communicator, if this communicator fails because of it.
    pub(super) fn outer(&self) -> Option<FaultError> {
        self.outer.borrow().clone()
    }

    pub(super) fn set_outer(&self, error: Option<FaultError>) -> Option<FaultError> {
        self.outer.replace(error)
    }

    /// Returns the communicators that fail when this one fails, without those that have been freed.
    pub(super) fn parts(&self) -> Vec<Comm> {
        let parts = self.parts.borrow();
        parts.iter().filter_map(WeakComm::upgrade).collect()
    }

    pub(super) fn add_part(&self, part: &Comm) {
        let mut parts = self.parts.borrow_mut();
        parts.retain(|part| part.upgrade().is_some());
        parts.push(part.downgrade());
    }

    pub(super) fn remove_part(&self, part: &Comm) {
        let is_other = |other: &WeakComm| {
            let other = other.upgrade();
            other.is_some_and(|other| other.context() != part.context())
        };
        self.parts.borrow_mut().retain(is_other);
    }
}
