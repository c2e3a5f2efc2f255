//! What is known of each member's part of a window, and where an access to it goes.
//!
//! The checks that can be made at the origin are made here: the rank, the epoch, the range.

use super::apply::{Memory, Reach};
use super::win::Win;
use super::{Flavor, OscClass, OscError};
use crate::Error;
use crate::btl::ProcId;
use crate::datatype::Datatype;
use crate::request::PROC_NULL;
use mpi_base::window::Mode;
use std::cell::Cell;
use std::ops::Range;

/// How this process reaches the memory of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// It is mapped here: its beginning.
    Here(*mut u8),
    /// It is mapped here by [`super::mapped`], for this process's own use: its beginning.
    Mapped(*mut u8),
    /// The system copies.
    Process(u32),
    /// By active messages.
    Message,
}

/// Which lock of a member this process holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held {
    Nothing,
    /// Asserted that no lock is needed.
    Unchecked,
    /// A lock of a member on this node.
    Here(Mode),
    /// Asked for by a message; granted before the call returned.
    There(Mode),
}

/// One member's part of a window.
pub(super) struct Target {
    /// Where it begins here, for accesses that need no more than a copy; null where there are none.
    pub plain: *mut u8,
    pub rank: u32,
    pub proc: ProcId,
    pub route: Route,
    /// Where it begins at its owner.
    pub address: u64,
    pub size: u64,
    pub unit: u64,
    /// Its index among the members on this node.
    pub here: Option<usize>,
    /// Whether accumulates to it need a lock, because some member cannot map it.
    pub locked: bool,
    pub held: Cell<Held>,
    /// Whether it is in the group of the access epoch that was started.
    pub started: Cell<bool>,
}

/// Where an access goes.
pub(super) enum Spot<'a> {
    /// Where displacement and datatype start, in memory that is reached directly.
    Direct(Memory<'a>),
    /// The same as an offset into the target's window, or an address in a dynamic one.
    Message(u64),
}

impl Win {
    /// The record of a rank; nothing for `MPI_PROC_NULL`.
    #[inline]
    pub(super) fn target(&self, rank: i32) -> Result<Option<&Target>, OscError> {
        match usize::try_from(rank)
            .ok()
            .and_then(|rank| self.0.targets.get(rank))
        {
            Some(target) => Ok(Some(target)),
            None if rank == PROC_NULL => Ok(None),
            None => Err(self.no_such_rank(rank)),
        }
    }

    #[cold]
    fn no_such_rank(&self, rank: i32) -> OscError {
        let sentence = format!(
            "{rank} is no rank of {}, whose ranks are 0 to {}",
            self.label(),
            self.0.targets.len() - 1
        );
        OscError::new(OscClass::Rank, sentence)
    }

    /// Whether the target may be accessed now.
    #[inline]
    pub(super) fn check_access(&self, target: &Target) -> Result<(), OscError> {
        match self.may_access(target) {
            true => Ok(()),
            false => Err(self.outside_epoch(target.rank)),
        }
    }

    #[inline(always)]
    fn may_access(&self, target: &Target) -> bool {
        self.0.epochs.is_open_to_all() || target.held.get() != Held::Nothing || target.started.get()
    }

    #[cold]
    fn outside_epoch(&self, rank: u32) -> OscError {
        let sentence = format!(
            "rank {} accesses rank {rank} of {} outside of an epoch: {}; MPI_Win_fence, MPI_Win_start, MPI_Win_lock or MPI_Win_lock_all begins one",
            self.rank(),
            self.label(),
            self.0.epochs.describe()
        );
        OscError::new(OscClass::Sync, sentence)
    }

    /// Where `count` elements at displacement `disp` lie, if the window holds all of them.
    pub(super) fn spot<'a>(
        &'a self,
        target: &'a Target,
        disp: i64,
        count: i64,
        datatype: &Datatype,
    ) -> Result<Spot<'a>, Error> {
        // Whatever is done there, the next flush has to put in order.
        self.0.epochs.order.has_stored();
        let span = datatype.span(count);
        if self.0.flavor == Flavor::Dynamic {
            return self.attached_spot(target, disp, span);
        }
        let offset = self.offset(target, disp, &span)?;
        let memory = |reach| {
            Spot::Direct(Memory {
                reach,
                address: target.address.wrapping_add_signed(offset),
                stripes: self.stripes(target),
                locked: target.locked,
            })
        };
        Ok(match target.route {
            Route::Here(base) | Route::Mapped(base) => {
                memory(Reach::Here(base.wrapping_offset(offset as isize)))
            }
            Route::Process(pid) => memory(Reach::Process(pid)),
            Route::Message => Spot::Message(offset as u64),
        })
    }

    /// The neighbours whose memory the program got elsewhere: those of which it is mapped all the same, and those of which the system copies it.
    pub fn mapped_and_copied(&self) -> (Vec<u32>, Vec<u32>) {
        let ranks = |is: fn(&Route) -> bool| {
            let targets = self.0.targets.iter();
            let found = targets.filter(|target| target.size > 0 && is(&target.route));
            found.map(|target| target.rank).collect()
        };
        (
            ranks(|route| matches!(route, Route::Mapped(_))),
            ranks(|route| matches!(route, Route::Process(_))),
        )
    }

    pub(super) fn stripes(&self, target: &Target) -> &[mpi_base::window::Stripe] {
        let words = match target.here {
            Some(index) => self.0.control.of(index),
            None => self.0.control.mine(),
        };
        &words.stripes
    }

    /// The offset of a displacement, if the bytes `span` around it are inside the target's window.
    fn offset(&self, target: &Target, disp: i64, span: &Range<i64>) -> Result<i64, OscError> {
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
    fn out_of_range(&self, target: &Target, disp: i64, span: &Range<i64>) -> OscError {
        let (bytes, unit) = (span.end - span.start, target.unit);
        let sentence = format!(
            "rank {} accesses {bytes} bytes at displacement {disp} of rank {} in {} ({} bytes from byte {} on), but the window has {} bytes there with a displacement unit of {unit}",
            self.rank(),
            target.rank,
            self.label(),
            bytes,
            i128::from(disp) * i128::from(unit) + i128::from(span.start),
            target.size,
        );
        OscError::new(OscClass::Range, sentence)
    }

    /// Where `len` contiguous bytes at a displacement lie, for the commonest accesses of all: mapped memory in an epoch.
    #[inline]
    pub(super) fn plain_spot(
        &self,
        rank: i32,
        disp: i64,
        len: usize,
    ) -> Option<(*mut u8, &Target)> {
        let target = self.0.targets.get(usize::try_from(rank).ok()?)?;
        if !self.may_access(target) {
            return None;
        }
        if target.plain.is_null() {
            return None;
        }
        let offset = u64::try_from(disp).ok()?.checked_mul(target.unit)?;
        let end = offset.checked_add(len as u64)?;
        // A dynamic window has no bytes of its own.
        (end <= target.size).then(|| (target.plain.wrapping_add(offset as usize), target))
    }
}
