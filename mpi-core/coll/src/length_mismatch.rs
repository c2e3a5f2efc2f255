//! Length mismatches: the call runs to its end with empty messages and then fails, so that no member hangs.
//!
//! Members that pass different counts detect this only when a message arrives that has another length than expected.
//! If the receiver of this message then aborted the algorithm, the members to which it must still send would hang,
//! even those with the right count.
//! So the receiver completes its algorithm, but every message that it sends from then on is empty:
//! no member uses invalid data as a result,
//! and each member that should have received data from this one detects a mismatch, too.
//! At the end of the algorithm the call fails with the first mismatch found.
//!
//! A call in this mode begins with [`Invocation::checked_for_lengths`](super::Invocation::checked_for_lengths)
//! and ends with [`Invocation::verdict`](super::Invocation::verdict).
//! In all other exchanges between members, such as agreements, a message of a different length fails immediately.
//!
//! A hang is still possible where lengths determine the communication pattern:
//! members whose lengths make them choose different algorithms, or numbers of pipeline segments, may still hang.
//! In broadcasts, and in calls where a member knows only the lengths of its own blocks,
//! the shared-memory protocols transfer the length with the data.

use super::CollError;
use crate::Error;
use crate::comm::{Conversation, WeakComm};
use crate::pml::{Context, PmlError};
use crate::request::{Outcome, Status};
use std::cell::RefCell;
use std::rc::Rc;

/// Identity of a collective call in one process:
/// the context, the plane (a message space of the communicator) and the tag of the call.
///
/// The steps of the call on other communicators carry the same identity, see [`Invocation::step_on`](super::Invocation::step_on).
#[derive(Clone)]
pub(super) struct CheckedCall {
    id: Id,
    /// This process's record of calls with a length mismatch.
    all: Rc<LengthMismatch>,
}

type Id = (Context, i32);

/// The calls of a process with a length mismatch, each with its first error; nearly always empty.
#[derive(Default)]
struct LengthMismatch(RefCell<Vec<(Id, Error)>>);

impl CheckedCall {
    /// Returns the identity of the collective call that runs on `conversation`.
    pub fn of(conversation: &Conversation) -> CheckedCall {
        CheckedCall {
            id: (
                conversation.comm().context().plane(conversation.plane()),
                conversation.tag(),
            ),
            all: conversation.engine().extension(LengthMismatch::default),
        }
    }

    #[inline]
    pub fn has_length_mismatch(&self) -> bool {
        let spoilt = self.all.0.borrow();
        !spoilt.is_empty() && spoilt.iter().any(|(id, _)| *id == self.id)
    }

    /// Removes and returns the first length mismatch of a call that has ended.
    #[inline]
    pub fn take(&self) -> Option<Error> {
        let mut spoilt = self.all.0.borrow_mut();
        if spoilt.is_empty() {
            return None;
        }
        let at = spoilt.iter().position(|(id, _)| *id == self.id)?;
        Some(spoilt.swap_remove(at).1)
    }
}

/// Records a length mismatch, which is returned at the end of the call; returns every other error immediately.
#[cold]
pub(super) fn keep(invocation: Option<&CheckedCall>, error: Error) -> Result<(), Error> {
    let Some(invocation) = invocation.filter(|_| is_of_lengths(&error)) else {
        return Err(error);
    };
    if !invocation.has_length_mismatch() {
        invocation.all.0.borrow_mut().push((invocation.id, error));
    }
    Ok(())
}

fn is_of_lengths(error: &Error) -> bool {
    let truncated = matches!(error.find(), Some(PmlError::Truncated { .. }));
    truncated
        || matches!(
            error.find(),
            Some(CollError::Short { .. } | CollError::Length { .. })
        )
}

/// The length that a message must have, with data for the error text.
pub(super) struct Due {
    pub bytes: u64,
    /// The communicator, for the error text.
    /// A weak reference, so that a message in progress does not keep the communicator alive.
    pub comm: WeakComm,
    /// The call that records the mismatch; `None` if a mismatch is an error immediately.
    pub invocation: Option<CheckedCall>,
}

impl Due {
    /// Returns or records the error if a completed receive has a wrong length.
    #[inline]
    pub fn judge(&self, outcome: Outcome) -> Result<(), Error> {
        match outcome {
            Ok(status) if status.bytes >= self.bytes => Ok(()),
            Ok(status) => {
                let short = self.short(status);
                keep(self.invocation.as_ref(), short)
            }
            Err(e) => keep(self.invocation.as_ref(), e),
        }
    }

    #[cold]
    fn short(&self, status: Status) -> Error {
        let comm = self.comm.upgrade();
        CollError::Short {
            comm: comm.as_ref().map_or_else(
                || "a communicator that has been freed".into(),
                |c| c.label(),
            ),
            me: comm.map(|c| c.rank()),
            source: status.source,
            bytes: status.bytes,
            due: self.bytes,
        }
        .into()
    }
}

#[cfg(test)]
mod tests;
