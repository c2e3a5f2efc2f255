//! Length mismatches: the collective runs to its end with empty messages and then fails, so that no member hangs.
//!
//! Members that pass different counts detect this only when a message of one arrives at another.
//! If the receiver then left its algorithm, the members to which it must still send would hang,
//! even those with the right count.
//! So the receiver completes its algorithm, but every message that it sends from then on is empty:
//! No member takes invalid data for a result,
//! and each member that should have received data from it detects a mismatch, too.
//! When the algorithm has ended, the call fails with the first mismatch found.
//!
//! [`Invocation::checked_for_lengths`](super::Invocation::checked_for_lengths) begins such a call,
//! and [`Invocation::verdict`](super::Invocation::verdict) ends it.
//! In all other exchanges between members, such as agreements, a message of a different length is an error at once.
//!
//! A hang remains possible where lengths determine the communication pattern:
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
/// The steps of the call on other communicators have the same identity, see [`Invocation::step_on`](super::Invocation::step_on).
#[derive(Clone)]
pub(super) struct CheckedCall {
    id: Id,
    /// The process's record of mismatched invocations.
    all: Rc<LengthMismatch>,
}

type Id = (Context, i32);

/// The mismatched invocations of a process, each with its first error; nearly always empty.
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

    /// Removes and returns the first error of an invocation that has ended.
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

/// Records a length mismatch for the end of its invocation; returns every other error.
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

/// Returns true if the error is a length mismatch between members.
fn is_of_lengths(error: &Error) -> bool {
    let truncated = matches!(error.find(), Some(PmlError::Truncated { .. }));
    truncated
        || matches!(
            error.find(),
            Some(CollError::Short { .. } | CollError::Length { .. })
        )
}

/// The expected length of a message.
pub(super) struct Due {
    pub bytes: u64,
    /// The communicator, for the error text;
    /// weak, so that a message in progress does not keep its communicator.
    pub comm: WeakComm,
    /// The receiver's invocation, if it continues after a length mismatch.
    pub invocation: Option<CheckedCall>,
}

impl Due {
    /// Checks the length of a completed receive.
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
