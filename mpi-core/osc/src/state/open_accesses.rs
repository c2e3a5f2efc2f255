//! Incomplete accesses of this process and of members on its node, for `osc_base_check`.

use crate::state::access_kind::AccessKind;
use crate::state::neighbours::{Doing, Neighbours};
use crate::state::target::Target;
use mpi_base::param::{Level, Param};
use std::cell::{Cell, RefCell};
use std::ops::Range;

/// Parameter `osc_base_check`: enables the detection of conflicting accesses.
pub static CHECK: Param<bool> = Param::new(
    "osc",
    "base",
    "check",
    "false",
    Level::USER,
    "Whether conflicting one-sided accesses are an error: accesses of one rank within an epoch, and concurrent accesses of ranks on one node",
);

/// The maximum number of recorded runs for each target; beyond it the oldest runs are dropped.
const MOST: usize = 4096;

struct Access {
    call: &'static str,
    kind: AccessKind,
    bytes: Range<i64>,
}

/// An incomplete access that conflicts with a new access.
pub(crate) struct Conflict {
    pub call: &'static str,
    /// The bytes in which both accesses overlap.
    pub bytes: Range<i64>,
    /// The rank of the other process; `None` if both accesses are from this process.
    pub origin: Option<u32>,
}

/// The incomplete accesses of a window; empty without `osc_base_check`.
pub(crate) struct OpenAccesses(Option<Known>);

struct Known {
    /// Incomplete accesses of this process, by target.
    own: RefCell<Vec<Vec<Access>>>,
    /// Incomplete accesses of the other members on this node.
    neighbours: Option<Neighbours>,
    /// The number of fences on this window so far.
    phase: Cell<u64>,
}

impl OpenAccesses {
    pub fn new(wanted: bool, size: u32, neighbours: Option<Neighbours>) -> OpenAccesses {
        OpenAccesses(wanted.then(|| Known {
            own: RefCell::new((0..size).map(|_| Vec::new()).collect()),
            neighbours,
            phase: Cell::new(0),
        }))
    }

    pub fn are_wanted(&self) -> bool {
        self.0.is_some()
    }

    /// Removes the accesses to one target, or to all targets, after they are complete.
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

    /// Returns the number of incomplete accesses of this process to a rank.
    pub fn count(&self, target: i32) -> usize {
        let Some(known) = &self.0 else { return 0 };
        let own = known.own.borrow();
        let target = usize::try_from(target).ok();
        target
            .and_then(|target| own.get(target))
            .map_or(0, Vec::len)
    }

    /// Removes all but the first `count` accesses of this process to a rank.
    pub fn forget_since(&self, target: i32, count: usize) {
        let Some(known) = &self.0 else { return };
        let mut own = known.own.borrow_mut();
        let target = usize::try_from(target).ok();
        if let Some(open) = target.and_then(|target| own.get_mut(target)) {
            open.truncate(count);
        }
    }

    /// Records a fence: it completes all earlier accesses at all members.
    pub fn forget_phase(&self) {
        if let Some(known) = &self.0 {
            known.phase.set(known.phase.get() + 1);
            self.forget(None);
        }
    }
    /// Records an access to the bytes `runs` of a target's window.
    /// If an incomplete access conflicts with it, fails with the incomplete access.
    pub fn begin(
        &self,
        (call, kind): (&'static str, AccessKind),
        target: u32,
        runs: impl Iterator<Item = Range<i64>>,
    ) -> Result<(), Conflict> {
        let Some(watched) = &self.0 else {
            return Ok(());
        };
        let mut all = watched.own.borrow_mut();
        let known = &mut all[target as usize];
        let before = known.len();
        for bytes in runs {
            if let Err(conflict) = watched.add(known, before, (call, kind), target, bytes) {
                known.truncate(before);
                return Err(conflict);
            }
        }
        let surplus = known.len().saturating_sub(MOST);
        known.drain(..surplus);
        Ok(())
    }
}

impl Known {
    /// Adds one run of an access unless it conflicts with an earlier access.
    /// The check covers the first `before` accesses of this process,
    /// and all incomplete accesses of the other members on this node.
    fn add(
        &self,
        known: &mut Vec<Access>,
        before: usize,
        (call, kind): (&'static str, AccessKind),
        target: u32,
        bytes: Range<i64>,
    ) -> Result<(), Conflict> {
        let overlaps = |old: &&Access| old.bytes.start < bytes.end && bytes.start < old.bytes.end;
        let mut earlier = known[..before].iter().filter(overlaps);
        if let Some(old) = earlier.find(|old| old.kind.conflicts_with(kind)) {
            return Err(Conflict {
                call: old.call,
                bytes: bytes.start.max(old.bytes.start)..bytes.end.min(old.bytes.end),
                origin: None,
            });
        }
        let doing = Doing {
            call,
            target,
            kind,
            bytes: bytes.clone(),
            phase: self.phase.get(),
        };
        let neighbours = self.neighbours.as_ref();
        if let Some(other) = neighbours.and_then(|neighbours| neighbours.begin(&doing)) {
            return Err(Conflict {
                call: other.call,
                bytes: other.bytes,
                origin: Some(other.origin),
            });
        }
        // If an equal access covers these bytes, a second entry would find no further conflicts.
        let is_covered = known[..before].iter().any(|old| {
            old.call == call
                && old.kind == kind
                && old.bytes.start <= bytes.start
                && bytes.end <= old.bytes.end
        });
        if !is_covered {
            known.push(Access { call, kind, bytes });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(open: &OpenAccesses, bytes: Range<i64>) -> bool {
        let read = ("MPI_Get", AccessKind::Read);
        open.begin(read, 0, std::iter::once(bytes)).is_ok()
    }

    #[test]
    fn repeated_reads_are_remembered_once_and_conflict_with_a_write() {
        let open = OpenAccesses::new(true, 1, None);
        assert!((0..100).all(|_| get(&open, 0..64)));
        assert!(get(&open, 8..16));
        assert_eq!(open.count(0), 1);
        assert!(get(&open, 32..96));
        assert_eq!(open.count(0), 2);
        let write = ("MPI_Put", AccessKind::Write);
        let conflict = open.begin(write, 0, std::iter::once(60..128)).err();
        let conflict = conflict.expect("a conflict");
        assert_eq!((conflict.call, conflict.bytes), ("MPI_Get", 60..64));
        open.forget(None);
        assert!(open.begin(write, 0, std::iter::once(60..128)).is_ok());
    }
}
