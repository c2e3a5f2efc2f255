//! Finding accesses that conflict (MPI 5.0, section 12.7), with the parameter `osc_base_check`.
//!
//! Each origin remembers what it has accessed at each target since these accesses were last completed there: by a fence, the end of an epoch or a flush.
//! A new access that overlaps one of them is an error unless both only read, or both are accumulates on the same basic type.
//! What other origins access at the same time is not known here.

use super::runs;
use super::target::Target;
use super::transfer::There;
use super::win::Win;
use super::{Flavor, OscClass, OscError};
use crate::datatype::Kind;
use mpi_base::param::{Level, Param};
use std::cell::RefCell;
use std::ops::Range;

/// Whether conflicts are looked for.
pub static CHECK: Param<bool> = Param::new(
    "osc",
    "base",
    "check",
    "false",
    Level::USER,
    "Whether each rank looks for accesses of its own that conflict within one epoch, which are an error then",
);

/// As many runs are remembered for each target; then the oldest are forgotten.
const MOST: usize = 4096;

/// What an access does to the target's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Does {
    Write,
    Read,
    /// One step for each element of this type.
    Update(Kind),
}

impl Does {
    fn conflicts_with(self, other: Does) -> bool {
        match (self, other) {
            (Does::Read, Does::Read) => false,
            (Does::Update(a), Does::Update(b)) => a != b,
            _ => true,
        }
    }
}

struct Access {
    call: &'static str,
    does: Does,
    bytes: Range<i64>,
}

/// What this process has accessed, by target; empty without `osc_base_check`.
pub(super) struct Accesses(Option<RefCell<Vec<Vec<Access>>>>);

impl Accesses {
    pub fn new(wanted: bool, size: u32) -> Accesses {
        let all = || RefCell::new((0..size).map(|_| Vec::new()).collect());
        Accesses(wanted.then(all))
    }

    pub fn are_wanted(&self) -> bool {
        self.0.is_some()
    }

    /// Accesses to one target, or to all, are complete.
    pub fn forget(&self, only: Option<&Target>) {
        let Some(all) = &self.0 else { return };
        let mut all = all.borrow_mut();
        match only {
            Some(target) => all[target.rank as usize].clear(),
            None => all.iter_mut().for_each(Vec::clear),
        }
    }
}

impl Win {
    /// Remembers an access, if conflicts are looked for; an error if it conflicts with one that is not complete.
    #[inline]
    pub(super) fn note(
        &self,
        call: &'static str,
        does: Does,
        target: &Target,
        there: &There<'_>,
    ) -> Result<(), OscError> {
        match self.0.accesses.are_wanted() {
            true => self.note_access(call, does, target, there),
            false => Ok(()),
        }
    }

    #[cold]
    fn note_access(
        &self,
        call: &'static str,
        does: Does,
        target: &Target,
        there: &There<'_>,
    ) -> Result<(), OscError> {
        let Accesses(Some(all)) = &self.0.accesses else {
            return Ok(());
        };
        let start = match self.0.flavor {
            Flavor::Dynamic => there.disp,
            _ => there.disp.saturating_mul(target.unit as i64),
        };
        let mut all = all.borrow_mut();
        let known = &mut all[target.rank as usize];
        let before = known.len();
        for run in runs::of(
            there.datatype,
            there.count,
            there.datatype.bytes(there.count),
        ) {
            let from = start.saturating_add(run.offset);
            let bytes = from..from.saturating_add(run.len);
            let overlaps =
                |old: &&Access| old.bytes.start < bytes.end && bytes.start < old.bytes.end;
            let mut earlier = known[..before].iter().filter(overlaps);
            if let Some(old) = earlier.find(|old| old.does.conflicts_with(does)) {
                let both = bytes.start.max(old.bytes.start)..bytes.end.min(old.bytes.end);
                let sentence = format!(
                    "{call} and {} of rank {} both access bytes {} to {} of rank {} in {} within one epoch: a flush or another epoch has to come between them",
                    old.call,
                    self.rank(),
                    both.start,
                    both.end,
                    target.rank,
                    self.label()
                );
                known.truncate(before);
                return Err(OscError::new(OscClass::Conflict, sentence));
            }
            known.push(Access { call, does, bytes });
        }
        let surplus = known.len().saturating_sub(MOST);
        known.drain(..surplus);
        Ok(())
    }
}
