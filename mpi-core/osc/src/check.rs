//! Finding accesses that conflict (MPI 5.0, section 12.7), with the parameter `osc_base_check`.
//!
//! Each origin remembers what it has accessed at each target since these accesses were last completed there: by a fence, the end of an epoch or a flush.
//! A new access that overlaps one of them is an error unless both only read, or both are accumulates on the same basic type.
//! What other origins on this node access at the same time is found in tables that they share ([`super::neighbours`]); of origins elsewhere nothing is known.

use super::neighbours::{Doing, Neighbours};
use super::runs;
use super::target::Target;
use super::transfer::There;
use super::turns::Turn;
use super::win::Win;
use super::{Flavor, OscClass, OscError};
use crate::Error;
use crate::datatype::Kind;
use mpi_base::param::{Level, Param};
use std::cell::{Cell, RefCell};
use std::ops::Range;

/// Whether conflicts are looked for.
pub static CHECK: Param<bool> = Param::new(
    "osc",
    "base",
    "check",
    "false",
    Level::USER,
    "Whether each rank looks for accesses that conflict, its own within one epoch and those of other ranks of its node at the same time, which are an error then",
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

/// What is being accessed; empty without `osc_base_check`.
pub(super) struct Accesses(Option<Known>);

struct Known {
    /// What this process has accessed, by target.
    own: RefCell<Vec<Vec<Access>>>,
    /// What others on this node access.
    neighbours: Option<Neighbours>,
    /// How many fences there have been.
    phase: Cell<u64>,
}

impl Accesses {
    pub fn new(wanted: bool, size: u32, neighbours: Option<Neighbours>) -> Accesses {
        Accesses(wanted.then(|| Known {
            own: RefCell::new((0..size).map(|_| Vec::new()).collect()),
            neighbours,
            phase: Cell::new(0),
        }))
    }

    pub fn are_wanted(&self) -> bool {
        self.0.is_some()
    }

    /// Accesses to one target, or to all, are complete.
    pub fn forget(&self, only: Option<&Target>) {
        let Some(known) = &self.0 else { return };
        let mut own = known.own.borrow_mut();
        match only {
            Some(target) => own[target.rank as usize].clear(),
            None => own.iter_mut().for_each(Vec::clear),
        }
        if let Some(neighbours) = &known.neighbours {
            neighbours.end(only.map(|target| target.rank));
        }
    }

    /// A fence ends: what was accessed before it is complete everywhere.
    pub fn forget_phase(&self) {
        if let Some(known) = &self.0 {
            known.phase.set(known.phase.get() + 1);
            self.forget(None);
        }
    }
}

impl Win {
    /// An access begins, as traces, recordings and the check for conflicts want to know; an error if it conflicts with one that is not complete.
    /// The access is over when what this returns is dropped.
    #[inline]
    pub(super) fn note(
        &self,
        call: &'static str,
        does: Does,
        target: &Target,
        there: &There<'_>,
    ) -> Result<Turn<'_>, Error> {
        self.traces_access(target, there.disp, there.datatype.bytes(there.count));
        if self.0.accesses.are_wanted() {
            self.note_access(call, does, target, there)?;
        }
        self.take_turn(call, target)
    }

    #[cold]
    fn note_access(
        &self,
        call: &'static str,
        does: Does,
        target: &Target,
        there: &There<'_>,
    ) -> Result<(), OscError> {
        let Accesses(Some(watched)) = &self.0.accesses else {
            return Ok(());
        };
        let start = match self.0.flavor {
            Flavor::Dynamic => there.disp,
            _ => there.disp.saturating_mul(target.unit as i64),
        };
        let mut all = watched.own.borrow_mut();
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
            let doing = Doing {
                call,
                target: target.rank,
                does,
                bytes: bytes.clone(),
                phase: watched.phase.get(),
            };
            let neighbours = watched.neighbours.as_ref();
            if let Some(other) = neighbours.and_then(|neighbours| neighbours.begin(&doing)) {
                let sentence = format!(
                    "{call} of rank {} and {} of rank {} both access bytes {} to {} of rank {} in {} at the same time: the first has to be complete, by a flush or the end of its epoch, before the second begins",
                    self.rank(),
                    other.call,
                    other.origin,
                    other.bytes.start,
                    other.bytes.end,
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
