//! The status layouts of MPICH and Open MPI.

use crate::family::StandardStatus;
use std::ffi::c_int;

/// `MPI_Status` of MPICH.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MpichStatus {
    pub count_low: c_int,
    /// Bit 0 is the cancelled flag. The other bits are the upper bits of the count in bytes.
    pub count_high_and_cancelled: c_int,
    pub source: c_int,
    pub tag: c_int,
    pub error: c_int,
}

impl MpichStatus {
    #[inline(always)]
    pub fn to_standard(&self) -> StandardStatus {
        let high = i64::from(self.count_high_and_cancelled as u32 >> 1);
        let bytes = high << 32 | i64::from(self.count_low as u32);
        StandardStatus {
            source: self.source,
            tag: self.tag,
            error: self.error,
            ..StandardStatus::with(bytes, self.count_high_and_cancelled & 1 != 0)
        }
    }

    #[inline(always)]
    pub fn of_standard(status: &StandardStatus) -> Self {
        let bytes = status.bytes();
        MpichStatus {
            count_low: bytes as c_int,
            count_high_and_cancelled: ((bytes >> 32) as c_int) << 1
                | c_int::from(status.is_cancelled()),
            source: status.source,
            tag: status.tag,
            error: status.error,
        }
    }
}

/// `MPI_Status` of Open MPI.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenMpiStatus {
    pub source: c_int,
    pub tag: c_int,
    pub error: c_int,
    pub cancelled: c_int,
    pub count: usize,
}

impl OpenMpiStatus {
    #[inline(always)]
    pub fn to_standard(&self) -> StandardStatus {
        StandardStatus {
            source: self.source,
            tag: self.tag,
            error: self.error,
            ..StandardStatus::with(self.count as i64, self.cancelled != 0)
        }
    }

    #[inline(always)]
    pub fn of_standard(status: &StandardStatus) -> Self {
        OpenMpiStatus {
            source: status.source,
            tag: status.tag,
            error: status.error,
            cancelled: status.is_cancelled().into(),
            count: status.bytes() as usize,
        }
    }
}
