//! Conversion of status arguments: output, input, and in-out.
#![allow(unsafe_code)]

use crate::family::{Family, StandardStatus, Word};
use std::ffi::c_int;
use std::ptr::{null_mut, without_provenance_mut};

/// The value of a status field that the backend has not written.
const UNTOUCHED: c_int = c_int::MIN + 7;

/// The status that the backend receives for output. A written field differs from this value.
pub const BLANK: StandardStatus = StandardStatus {
    source: UNTOUCHED,
    tag: UNTOUCHED,
    error: UNTOUCHED,
    internal: [0; 5],
};

/// A status output argument. On drop, the backend's status is stored for the program.
/// Fields that the backend does not write keep the program's values.
pub struct StatusOut<F: Family> {
    filled: F::BelowStatus,
    place: *mut F::Status,
}

impl<F: Family> StatusOut<F> {
    /// # Safety
    /// `place` is null, ignored, or points to a status of the program.
    #[inline(always)]
    pub unsafe fn new(place: *mut F::Status) -> Self {
        StatusOut {
            filled: F::status_below(&BLANK),
            place,
        }
    }

    #[inline(always)]
    fn is_ignored(&self) -> bool {
        self.place.is_null() || self.place.addr() == F::STATUS_IGNORE
    }

    #[inline(always)]
    pub fn argument(&mut self) -> *mut F::BelowStatus {
        match self.is_ignored() {
            true => without_provenance_mut(F::BELOW_STATUS_IGNORE),
            false => &raw mut self.filled,
        }
    }
}

impl<F: Family> Drop for StatusOut<F> {
    #[inline(always)]
    fn drop(&mut self) {
        if !self.is_ignored() {
            // SAFETY: `place` is not null and not ignored.
            // So `place` is a status of the program, by contract of `new`.
            unsafe { store_count::<F>(&self.filled, self.place) }
        }
    }
}

/// Stores a status in which the backend has written all fields or only the count.
/// MPICH's file operations write only the count.
///
/// # Safety
/// `place` points to a status of the program, which may be unaligned.
#[inline(always)]
unsafe fn store_count<F: Family>(filled: &F::BelowStatus, place: *mut F::Status) {
    let status = F::status_above(filled);
    if status.source != UNTOUCHED || status.error != UNTOUCHED {
        // SAFETY: `place` points to a status of the program, by contract.
        return unsafe { store::<F>(filled, place) };
    }
    // SAFETY: `place` points to a status of the program, by contract.
    // The fields of a status are integers, for which any content is valid.
    unsafe {
        let before = F::status_in(&place.read_unaligned());
        place.write_unaligned(F::status_out(&StandardStatus {
            internal: status.internal,
            ..before
        }));
    }
}

/// Stores a status that the backend has filled. Has no effect if source and error are not written.
///
/// # Safety
/// `place` points to a status of the program, which may be unaligned.
#[inline(always)]
pub unsafe fn store<F: Family>(filled: &F::BelowStatus, place: *mut F::Status) {
    let mut status = F::status_above(filled);
    if status.source == UNTOUCHED && status.error == UNTOUCHED {
        return;
    }
    if status.error == UNTOUCHED {
        // SAFETY: `place` points to a status of the program, by contract.
        // The fields of a status are integers, for which any content is valid.
        status.error = F::status_error(&unsafe { place.read_unaligned() });
    } else if status.error != 0 {
        status.error = F::word_out(Word::Error, status.error);
    }
    if status.source < 0 {
        status.source = F::word_out(Word::Rank, status.source);
    }
    if status.tag < 0 {
        status.tag = F::word_out(Word::Tag, status.tag);
    }
    // SAFETY: `place` points to a status of the program, by contract.
    unsafe { place.write_unaligned(F::status_out(&status)) }
}

/// Converts a status of the backend, including constants, to the program's ABI.
pub fn status_to_program<F: Family>(below: &F::BelowStatus) -> F::Status {
    let status = F::status_above(below);
    F::status_out(&StandardStatus {
        source: F::word_out(Word::Rank, status.source),
        tag: F::word_out(Word::Tag, status.tag),
        error: F::word_out(Word::Error, status.error),
        ..status
    })
}

/// A status input argument, converted to the backend's ABI.
pub struct StatusGiven<F: Family> {
    status: F::BelowStatus,
    is_null: bool,
}

/// # Safety
/// `place` is null, ignored, or a status of the program.
#[inline(always)]
pub unsafe fn status_given<F: Family>(place: *const F::Status) -> StatusGiven<F> {
    let is_null = place.is_null() || place.addr() == F::STATUS_IGNORE;
    let status = F::status_below(&match is_null {
        true => StandardStatus::default(),
        // SAFETY: `place` is not null and not ignored.
        // So `place` is a status of the program, by contract.
        false => load::<F>(&unsafe { place.read_unaligned() }),
    });
    StatusGiven { status, is_null }
}

/// Converts the constants in a program's status to the backend's, with the standard's layout.
pub fn load<F: Family>(theirs: &F::Status) -> StandardStatus {
    let mut status = F::status_in(theirs);
    status.source = F::word_in(Word::Rank, status.source);
    status.tag = F::word_in(Word::Tag, status.tag);
    status.error = F::word_in(Word::Error, status.error);
    status
}

impl<F: Family> StatusGiven<F> {
    #[inline(always)]
    pub fn argument(&self) -> *const F::BelowStatus {
        match self.is_null {
            true => null_mut(),
            false => &raw const self.status,
        }
    }

    #[inline(always)]
    pub fn argument_mut(&mut self) -> *mut F::BelowStatus {
        match self.is_null {
            true => null_mut(),
            false => &raw mut self.status,
        }
    }

    /// # Safety
    /// `place` is the address from which the status was read.
    pub unsafe fn write_back(&self, place: *mut F::Status) {
        if !self.is_null {
            // SAFETY: `place` is a status of the program, which `status_given` has read.
            unsafe { store::<F>(&self.status, place) }
        }
    }
}
