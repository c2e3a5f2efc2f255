//! The implementation-defined fields of `MPI_Status`.
//!
//! `MPI_internal` holds the number of received bytes in words 0 and 1, low word first.
//! Word 2 is the cancelled flag. Words 3 and 4 are zero.

use crate::abi::{MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_SUCCESS, MPI_Status};
use std::ffi::c_int;

/// The empty status, of an operation without a received message (section 3.7.3).
pub const EMPTY: MPI_Status = MPI_Status {
    MPI_SOURCE: MPI_ANY_SOURCE,
    MPI_TAG: MPI_ANY_TAG,
    MPI_ERROR: MPI_SUCCESS,
    MPI_internal: [0; 5],
};

impl MPI_Status {
    /// Returns the number of bytes received.
    #[inline]
    pub fn bytes(&self) -> i64 {
        let [low, high, ..] = self.MPI_internal;
        i64::from(high) << 32 | i64::from(low as u32)
    }

    #[inline]
    pub fn set_bytes(&mut self, bytes: i64) {
        self.MPI_internal[0] = bytes as c_int;
        self.MPI_internal[1] = (bytes >> 32) as c_int;
    }

    pub fn cancelled(&self) -> bool {
        self.MPI_internal[2] != 0
    }

    pub fn set_cancelled(&mut self, cancelled: bool) {
        self.MPI_internal[2] = cancelled.into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_keeps_the_length_of_a_large_message() {
        let mut status = MPI_Status::default();
        for bytes in [0, 1, i64::from(u32::MAX), 1 << 40, i64::MAX] {
            status.set_bytes(bytes);
            status.set_cancelled(bytes == 1);
            assert_eq!((status.bytes(), status.cancelled()), (bytes, bytes == 1));
        }
    }
}
