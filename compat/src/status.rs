//! Statuses: one that a call fills, one that a call reads, arrays of them.
#![allow(unsafe_code)]

use crate::family::{Family, StandardStatus, Word};
use std::ffi::c_int;
use std::ptr::{null_mut, without_provenance_mut};

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
    filled: F::BelowStatus,
    place: *mut F::Status,
}

impl<F: Family> StatusOut<F> {
    #[inline(always)]
    pub fn new(place: *mut F::Status) -> Self {
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

    /// # Safety
    /// The place is what the program gave.
    #[inline(always)]
    pub unsafe fn finish(self) {
        if !self.is_ignored() {
            // SAFETY: passed on.
            unsafe { store_count::<F>(&self.filled, self.place) }
        }
    }
}

/// Writes a status that a call filled, or of which it filled the count alone, as access to files does in MPICH.
///
/// # Safety
/// `place` is a status of the program, aligned or not.
#[inline(always)]
unsafe fn store_count<F: Family>(filled: &F::BelowStatus, place: *mut F::Status) {
    let status = F::status_above(filled);
    if status.source != UNTOUCHED || status.error != UNTOUCHED {
        // SAFETY: passed on.
        return unsafe { store::<F>(filled, place) };
    }
    // SAFETY: passed on; the fields are plain data, whatever they hold.
    unsafe {
        let before = F::status_in(&place.read_unaligned());
        place.write_unaligned(F::status_out(&StandardStatus {
            internal: status.internal,
            ..before
        }));
    }
}

/// Writes a status that a call filled; nothing if it did not.
///
/// # Safety
/// `place` is a status of the program, aligned or not.
#[inline(always)]
pub unsafe fn store<F: Family>(filled: &F::BelowStatus, place: *mut F::Status) {
    let mut status = F::status_above(filled);
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

/// A status of the library below in the program's form.
pub fn status_to_program<F: Family>(below: &F::BelowStatus) -> F::Status {
    let status = F::status_above(below);
    F::status_out(&StandardStatus {
        source: F::word_out(Word::Rank, status.source),
        tag: F::word_out(Word::Tag, status.tag),
        error: F::word_out(Word::Error, status.error),
        ..status
    })
}

/// A status that a call reads.
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
        // SAFETY: passed on.
        false => load::<F>(&unsafe { place.read_unaligned() }),
    });
    StatusGiven { status, is_null }
}

/// A status of the program with the words of the library below.
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
    /// `place` is where the status was read.
    pub unsafe fn write_back(&self, place: *mut F::Status) {
        if !self.is_null {
            // SAFETY: passed on.
            unsafe { store::<F>(&self.status, place) }
        }
    }
}
