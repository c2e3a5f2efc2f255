//! The status array of a call that completes several requests.
//!
//! Every status is stored. If any operation failed, every status has an error code.
//! The call then fails with `MPI_ERR_IN_STATUS` (section 3.2.5).

use super::set_status;
use crate::abi::*;
use crate::api::args::{InOutArray, Out};
use crate::error::{Failure, Outcome};

/// The caller's status array, and the first failure.
pub(crate) struct Statuses<'a> {
    /// The statuses, or `MPI_STATUSES_IGNORE`.
    all: InOutArray<'a, MPI_Status>,
    failure: Option<Failure>,
}

impl<'a> Statuses<'a> {
    pub fn at(all: InOutArray<'a, MPI_Status>) -> Self {
        let failure = None;
        Statuses { all, failure }
    }

    fn is_ignored(&self) -> bool {
        self.all.address().addr() == MPI_STATUSES_IGNORE.addr()
    }

    /// Returns the statuses from an index on, or `None` for `MPI_STATUSES_IGNORE`.
    #[inline]
    pub fn rest(&self, from: usize) -> Option<InOutArray<'a, MPI_Status>> {
        (!self.is_ignored()).then(|| self.all.part(from, usize::MAX))
    }

    /// Returns the status at an index, or `None` for `MPI_STATUSES_IGNORE`.
    #[inline]
    pub fn place(&self, at: usize) -> Option<Out<'a, MPI_Status>> {
        (!self.is_ignored()).then(|| self.all.at(at))?
    }

    pub fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// Stores a status. After a failure, all statuses before and after it have an error code.
    pub fn store(&mut self, at: usize, status: &MPI_Status, failure: Option<Failure>) {
        if let Some(place) = self.place(at) {
            set_status(place, status);
            if self.failure.is_none() && failure.is_some() {
                let before = (0..at).filter_map(|before| self.place(before));
                before.for_each(|earlier| earlier.set_error(MPI_SUCCESS));
            }
            if self.failure.is_some() || failure.is_some() {
                place.set_error(failure.as_ref().map_or(MPI_SUCCESS, Failure::code));
            }
        }
        self.failure = self.failure.take().or(failure);
    }

    /// Returns `MPI_ERR_IN_STATUS` if any operation failed.
    pub fn report(self) -> Outcome {
        match self.failure {
            Some(first) => Err(first.with_code(MPI_ERR_IN_STATUS)),
            None => Ok(()),
        }
    }
}
