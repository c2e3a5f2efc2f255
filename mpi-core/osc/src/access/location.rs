//! The location of an access at the target, and the checks of the origin.
//!
//! This module checks the epoch and the range; [`Accesses::target`] has checked the rank before.

use crate::Error;
use crate::access::TargetLocation;
use crate::datatype::Datatype;
use crate::direct::apply::{Memory, Reach};
use crate::error::{OscClass, OscError};
use crate::spec::Flavor;
use crate::state::target::{Held, Route, Target};
use crate::win::Win;
use std::ops::Range;

impl Win {
    /// Returns the put and get operations of this window.
    #[inline(always)]
    pub fn accesses(&self) -> Accesses<'_> {
        Accesses { win: self }
    }
}

/// The put and get operations of a window, and the checks and target locations of all accesses.
#[derive(Clone, Copy)]
pub struct Accesses<'a> {
    win: &'a Win,
}

impl<'a> Accesses<'a> {
    pub(super) fn win(self) -> &'a Win {
        self.win
    }

    /// Checks that the current epoch allows an access to the target.
    #[inline]
    pub(crate) fn check_access(self, target: &Target) -> Result<(), OscError> {
        match self.may_access(target) {
            true => Ok(()),
            false => Err(self.outside_epoch(target.rank)),
        }
    }

    #[inline(always)]
    fn may_access(self, target: &Target) -> bool {
        self.win.state().epochs().is_open_to_all()
            || target.held.get() != Held::Nothing
            || target.started.get()
    }

    #[cold]
    fn outside_epoch(self, rank: u32) -> OscError {
        let sentence = format!(
            "rank {} accesses rank {rank} of {} outside of an epoch: {}; MPI_Win_fence, MPI_Win_start, MPI_Win_lock or MPI_Win_lock_all begins one",
            self.win.rank(),
            self.win.label(),
            self.win.state().epochs().describe()
        );
        OscError::new(OscClass::Sync, sentence)
    }

    /// Returns the location of `count` elements at displacement `disp`.
    /// Fails if the window does not contain all of them.
    pub(crate) fn locate(
        self,
        target: &'a Target,
        disp: i64,
        count: i64,
        datatype: &Datatype,
    ) -> Result<TargetLocation<'a>, Error> {
        // The caller may store to this location: record a store that the next flush must order.
        self.win.state().epochs().order.has_stored();
        if self.win.flavor() == Flavor::Dynamic {
            return self.win.attached().locate(target, disp, count, datatype);
        }
        let span = datatype.span(count);
        let offset = self.offset(target, disp, &span)?;
        let memory = |reach| {
            TargetLocation::Direct(Memory {
                reach,
                address: target.address.wrapping_add_signed(offset),
                stripes: self.win.memory().stripes(target),
                exclusion: self.win.memory().exclusion(target),
                node: Some(self.win.engine().node()),
                locked: target.locked,
            })
        };
        Ok(match target.route {
            Route::Here(base) | Route::Mapped(base) => {
                memory(Reach::Here(base.wrapping_offset(offset as isize)))
            }
            Route::Process(pid) => memory(Reach::Process(pid)),
            Route::Message => TargetLocation::Message(offset as u64),
        })
    }

    /// Converts a displacement to a byte offset in the target's window.
    /// Fails if the bytes `span`, relative to this offset, are not all inside the window.
    fn offset(self, target: &Target, disp: i64, span: &Range<i64>) -> Result<i64, OscError> {
        let offset = disp.checked_mul(target.unit as i64);
        let inside = |offset: i64| {
            let from = offset.checked_add(span.start)?;
            let to = offset.checked_add(span.end)?;
            let fits = from >= 0 && u64::try_from(to).is_ok_and(|to| to <= target.size);
            (fits || span.is_empty()).then_some(offset)
        };
        offset
            .and_then(inside)
            .ok_or_else(|| self.out_of_range(target, disp, span))
    }

    #[cold]
    fn out_of_range(self, target: &Target, disp: i64, span: &Range<i64>) -> OscError {
        let (bytes, unit) = (span.end - span.start, target.unit);
        let sentence = format!(
            "rank {} accesses {bytes} bytes at displacement {disp} of rank {} in {} ({} bytes from byte {} on), but the window has {} bytes there with a displacement unit of {unit}",
            self.win.rank(),
            target.rank,
            self.win.label(),
            bytes,
            i128::from(disp) * i128::from(unit) + i128::from(span.start),
            target.size,
        );
        OscError::new(OscClass::Range, sentence)
    }

    /// Fast path: returns the address of `len` contiguous bytes at a displacement.
    /// Returns `None` unless the memory is mapped and an epoch allows the access.
    #[inline]
    pub(crate) fn plain_address(
        self,
        rank: i32,
        disp: i64,
        len: usize,
    ) -> Option<(*mut u8, &'a Target)> {
        let target = self
            .win
            .state()
            .targets()
            .get(usize::try_from(rank).ok()?)?;
        if !self.may_access(target) {
            return None;
        }
        if target.plain.is_null() {
            return None;
        }
        let offset = u64::try_from(disp).ok()?.checked_mul(target.unit)?;
        let end = offset.checked_add(len as u64)?;
        // A dynamic window has size 0, so the fast path never applies to it.
        (end <= target.size).then(|| (target.plain.wrapping_add(offset as usize), target))
    }
}
