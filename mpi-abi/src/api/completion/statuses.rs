//! Statuses of several requests, stored in an array of the caller.
//!
//! Invariants: every status is stored, and if an operation failed all of them with an error code, whichever failed first;
//! the call then fails with `MPI_ERR_IN_STATUS` (section 3.2.5).

use super::set_status;
use crate::abi::*;
use crate::error::{Failure, Outcome};

/// The status array, and the first failure.
pub(crate) struct Statuses {
    /// The first status, or `MPI_STATUSES_IGNORE`.
    first: *mut MPI_Status,
    failure: Option<Failure>,
}

impl Statuses {
    pub fn at(first: *mut MPI_Status) -> Statuses {
        Statuses {
            first,
            failure: None,
        }
    }

    /// Returns the address of a status, unless they are ignored.
    pub fn place(&self, at: usize) -> Option<*mut MPI_Status> {
        let ignored = self.first.addr() == MPI_STATUSES_IGNORE.addr();
        (!ignored).then(|| self.first.wrapping_add(at))
    }

    pub fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// Stores a status; once a failure occurs, it and all statuses before and after it get an error code.
    ///
    /// # Safety
    /// The statuses are an array of the caller with an element `at`, and those before it are stored.
    pub unsafe fn store(&mut self, at: usize, status: &MPI_Status, failure: Option<Failure>) {
        if let Some(place) = self.place(at) {
            // SAFETY: elements up to `at` are in the array by the `# Safety` contract of this function.
            unsafe {
                set_status(place, status);
                let set_error = |at, code| (&raw mut (*self.first.add(at)).MPI_ERROR).write(code);
                if self.failure.is_none() && failure.is_some() {
                    (0..at).for_each(|before| set_error(before, MPI_SUCCESS));
                }
                if self.failure.is_some() || failure.is_some() {
                    set_error(at, failure.as_ref().map_or(MPI_SUCCESS, Failure::code));
                }
            }
        }
        self.failure = self.failure.take().or(failure);
    }

    /// Returns `MPI_ERR_IN_STATUS` if an operation failed.
    pub fn report(self) -> Outcome {
        match self.failure {
            Some(first) => Err(first.with_code(MPI_ERR_IN_STATUS)),
            None => Ok(()),
        }
    }
}
