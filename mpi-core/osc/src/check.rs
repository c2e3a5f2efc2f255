//! Detection of conflicting accesses (MPI 5.0, section 12.7), parameter `osc_base_check`.
//!
//! Each origin records its accesses to each target until they are complete at the target,
//! by a fence, the end of an epoch or a flush.
//! A new access that overlaps a recorded one is an error, except in two cases:
//! both accesses only read, or both are accumulates on the same basic type.
//! Accesses of other origins on this node are found in shared-memory tables
//! ([`crate::state::neighbours`]). Accesses of origins on other nodes are not checked.

use super::runs;
use super::target_args::TargetArgs;
use super::win::Win;
use crate::Error;
use crate::error::{OscClass, OscError};
use crate::spec::Flavor;
use crate::state::access_kind::AccessKind;
use crate::state::access_order::OrderedAccess;
use crate::state::open_accesses::Conflict;
use crate::state::target::Target;

impl Win {
    /// Returns the conflict detection of this window.
    #[inline(always)]
    pub(crate) fn checks(&self) -> AccessChecks<'_> {
        AccessChecks { win: self }
    }
}

/// The conflict detection of a window.
#[derive(Clone, Copy)]
pub(crate) struct AccessChecks<'a> {
    win: &'a Win,
}

impl<'a> AccessChecks<'a> {
    /// Records the start of an access for traces, recorded jobs and the conflict check.
    /// Fails if the access conflicts with an incomplete access.
    /// In a recorded job, the access ends when the caller drops the returned value.
    #[inline]
    pub(crate) fn note(
        self,
        call: &'static str,
        kind: AccessKind,
        target: &Target,
        target_args: &TargetArgs<'_>,
    ) -> Result<OrderedAccess<'a>, Error> {
        let bytes = target_args.datatype.bytes(target_args.count);
        self.win.traced().access(target, target_args.disp, bytes);
        self.win.traced().count(target, kind, bytes);
        if self.win.state().open_accesses().are_wanted() {
            self.note_access(call, kind, target, target_args)?;
        }
        self.win.recorded().order_access(call, target)
    }

    #[cold]
    fn note_access(
        self,
        call: &'static str,
        kind: AccessKind,
        target: &Target,
        target_args: &TargetArgs<'_>,
    ) -> Result<(), OscError> {
        let start = match self.win.flavor() {
            Flavor::Dynamic => target_args.disp,
            _ => target_args.disp.saturating_mul(target.unit as i64),
        };
        let bytes = target_args.datatype.bytes(target_args.count);
        let runs = runs::of(target_args.datatype, target_args.count, bytes).map(|run| {
            let from = start.saturating_add(run.offset);
            from..from.saturating_add(run.len)
        });
        let begun = (self.win.state().open_accesses()).begin((call, kind), target.rank, runs);
        begun.map_err(|other| self.conflict(call, target.rank, &other))
    }

    #[cold]
    fn conflict(self, call: &str, target: u32, other: &Conflict) -> OscError {
        let (rank, window, bytes) = (self.win.rank(), self.win.label(), &other.bytes);
        let sentence = match other.origin {
            None => format!(
                "{call} and {} of rank {rank} both access bytes {} to {} of rank {target} in {window} within one epoch: a flush or another epoch has to come between them",
                other.call, bytes.start, bytes.end
            ),
            Some(origin) => format!(
                "{call} of rank {rank} and {} of rank {origin} both access bytes {} to {} of rank {target} in {window} at the same time: the first has to be complete, by a flush or the end of its epoch, before the second begins",
                other.call, bytes.start, bytes.end
            ),
        };
        OscError::new(OscClass::Conflict, sentence)
    }
}
