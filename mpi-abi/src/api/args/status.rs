//! `MPI_Status` output arguments. A call may set only some of the fields.

use super::Out;
use crate::abi::*;
use std::ffi::c_int;

impl Out<'_, MPI_Status> {
    #[inline(always)]
    pub fn is_ignored(self) -> bool {
        self.address().addr() == MPI_STATUS_IGNORE.addr()
    }

    /// Stores all fields except `MPI_ERROR`, unless the status is `MPI_STATUS_IGNORE`.
    #[inline(always)]
    pub fn set_fields(self, status: &MPI_Status) {
        if self.is_ignored() {
            return;
        }
        let to = self.address();
        // SAFETY: `to` is not `MPI_STATUS_IGNORE`, so `Out::new` requires that it is valid.
        unsafe {
            (&raw mut (*to).MPI_SOURCE).write(status.MPI_SOURCE);
            (&raw mut (*to).MPI_TAG).write(status.MPI_TAG);
            (&raw mut (*to).MPI_internal).write(status.MPI_internal);
        }
    }

    /// Stores the field `MPI_ERROR`, unless the status is `MPI_STATUS_IGNORE`.
    #[inline(always)]
    pub fn set_error(self, code: c_int) {
        if self.is_ignored() {
            return;
        }
        let to = self.address();
        // SAFETY: `to` is not `MPI_STATUS_IGNORE`, so `Out::new` requires that it is valid.
        unsafe { (&raw mut (*to).MPI_ERROR).write(code) };
    }
}
