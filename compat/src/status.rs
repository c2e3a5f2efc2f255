//! Statuses: one that a call fills, one that a call reads, arrays of them.
#![allow(unsafe_code)]

use crate::family::{Family, StandardStatus, Word};
use std::ffi::c_int;
use std::ptr::null_mut;

/// What a call has not written.
const UNTOUCHED: c_int = c_int::MIN + 7;

/// A status before a call.
pub const BLANK: StandardStatus = StandardStatus {
    source: UNTOUCHED,
    tag: UNTOUCHED,
    error: UNTOUCHED,
    internal: [0; 5],
};

/// One status that a call fills; what it leaves alone stays as it was in the program's status.
pub struct StatusOut<F: Family> {
    filled: StandardStatus,
    place: *mut F::Status,
}

impl<F: Family> StatusOut<F> {
    #[inline(always)]
    pub fn new(place: *mut F::Status) -> Self {
        StatusOut {
            filled: BLANK,
            place,
        }
    }

    #[inline(always)]
    fn is_ignored(&self) -> bool {
        self.place.is_null() || self.place.addr() == F::STATUS_IGNORE
    }

    #[inline(always)]
    pub fn argument(&mut self) -> *mut StandardStatus {
        match self.is_ignored() {
            true => null_mut(),
            false => &raw mut self.filled,
        }
    }

    /// # Safety
    /// The place is what the program gave.
    #[inline(always)]
    pub unsafe fn finish(self) {
        if !self.is_ignored() {
            // SAFETY: passed on.
            unsafe { store::<F>(&self.filled, self.place) }
        }
    }
}

/// Writes a status that a call filled; nothing if it did not.
///
/// # Safety
/// `place` is a status of the program, aligned or not.
#[inline(always)]
pub unsafe fn store<F: Family>(filled: &StandardStatus, place: *mut F::Status) {
    let mut status = *filled;
    if status.source == UNTOUCHED && status.error == UNTOUCHED {
        return;
    }
    if status.error == UNTOUCHED {
        // SAFETY: passed on; the field is plain data, whatever it holds.
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
    // SAFETY: passed on.
    unsafe { place.write_unaligned(F::status_out(&status)) }
}

/// A status that a call reads.
pub struct StatusGiven {
    status: StandardStatus,
    is_null: bool,
}

/// # Safety
/// `place` is null, ignored, or a status of the program.
#[inline(always)]
pub unsafe fn status_given<F: Family>(place: *const F::Status) -> StatusGiven {
    let is_null = place.is_null() || place.addr() == F::STATUS_IGNORE;
    let status = match is_null {
        true => StandardStatus::default(),
        // SAFETY: passed on.
        false => load::<F>(&unsafe { place.read_unaligned() }),
    };
    StatusGiven { status, is_null }
}

/// A status of the program in the standard's form.
pub fn load<F: Family>(theirs: &F::Status) -> StandardStatus {
    let mut status = F::status_in(theirs);
    status.source = F::word_in(Word::Rank, status.source);
    status.tag = F::word_in(Word::Tag, status.tag);
    status.error = F::word_in(Word::Error, status.error);
    status
}

impl StatusGiven {
    #[inline(always)]
    pub fn argument(&self) -> *const StandardStatus {
        match self.is_null {
            true => null_mut(),
            false => &raw const self.status,
        }
    }

    #[inline(always)]
    pub fn argument_mut(&mut self) -> *mut StandardStatus {
        match self.is_null {
            true => null_mut(),
            false => &raw mut self.status,
        }
    }

    /// # Safety
    /// `place` is where the status was read.
    pub unsafe fn write_back<F: Family>(&self, place: *mut F::Status) {
        if !self.is_null {
            // SAFETY: passed on.
            unsafe { store::<F>(&self.status, place) }
        }
    }
}
