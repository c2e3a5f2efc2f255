//! Statuses, of which some fields are written and others stay as they are.

use super::Out;
use crate::abi::*;
use std::ffi::c_int;

impl Out<'_, MPI_Status> {
    #[inline(always)]
    pub fn is_ignored(self) -> bool {
        self.address().addr() == MPI_STATUS_IGNORE.addr()
    }

    /// Stores everything but the error field, unless the status is ignored.
    #[inline(always)]
    pub fn set_fields(self, status: &MPI_Status) {
        if self.is_ignored() {
            return;
        }
        let to = self.address();
        // SAFETY: not `MPI_STATUS_IGNORE`, so valid for writing by the contract of `Out::new`.
        unsafe {
            (&raw mut (*to).MPI_SOURCE).write(status.MPI_SOURCE);
            (&raw mut (*to).MPI_TAG).write(status.MPI_TAG);
            (&raw mut (*to).MPI_internal).write(status.MPI_internal);
        }
    }

    /// Stores the error field, unless the status is ignored.
    #[inline(always)]
    pub fn set_error(self, code: c_int) {
        if self.is_ignored() {
            return;
        }
        let to = self.address();
        // SAFETY: not `MPI_STATUS_IGNORE`, so valid for writing by the contract of `Out::new`.
        unsafe { (&raw mut (*to).MPI_ERROR).write(code) };
    }
}
