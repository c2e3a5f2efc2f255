//! Invocations in which a message of another length came than was due: they go on to their end, so that no member waits in vain.
//!
//! Members that give different counts do not know it before a message of one of them arrives at another.
//! A member that left its algorithm then would let those to which it had still to send wait for ever, right counts or not.
//! So it goes through all its messages, but what it sends from then on is empty:
//! no member takes its rubbish for a result, and each that should have had data from it goes the same way.
//! When the algorithm has ended its call fails, with what was found first.
//!
//! [`Invocation::enduring`](super::Invocation::enduring) begins it and [`Invocation::verdict`](super::Invocation::verdict) ends it.
//! In all other conversations, such as agreements of members on something, a message of another length is an error at once.
//!
//! It does not help where lengths decide which member sends what to which:
//! members whose lengths make them choose different algorithms, or cut a pipeline into different numbers of segments, may wait for each other still.
//! Nor does shared memory say how long its data are, but in a broadcast.

use super::CollError;
use crate::Error;
use crate::comm::{Conversation, WeakComm};
use crate::pml::{Context, PmlError};
use crate::request::{Outcome, Status};
use std::cell::RefCell;
use std::rc::Rc;

/// An invocation of one process: the plane in which it began, and its tag there.
///
/// What it does on other communicators is a part of it, see [`Invocation::step_on`](super::Invocation::step_on).
#[derive(Clone)]
pub(super) struct CheckedCall {
    id: Id,
    /// Where all spoilt ones of the process are.
    all: Rc<LengthMismatch>,
}

type Id = (Context, i32);

/// The spoilt invocations of a process, and what was found in each; nearly always there is none.
#[derive(Default)]
struct LengthMismatch(RefCell<Vec<(Id, Error)>>);

impl CheckedCall {
    /// The invocation that a conversation belongs to.
    pub fn of(talk: &Conversation) -> CheckedCall {
        CheckedCall {
            id: (talk.comm().context().plane(talk.plane()), talk.tag()),
            all: talk.engine().extension(LengthMismatch::default),
        }
    }

    #[inline]
    pub fn has_length_mismatch(&self) -> bool {
        let spoilt = self.all.0.borrow();
        !spoilt.is_empty() && spoilt.iter().any(|(id, _)| *id == self.id)
    }

    /// What was found first in an invocation that has ended.
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

/// Keeps an error of lengths for the end of an invocation that endures; all others come back.
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

/// Whether members do not agree how long something is.
fn is_of_lengths(error: &Error) -> bool {
    let truncated = matches!(error.find(), Some(PmlError::Truncated { .. }));
    truncated
        || matches!(
            error.find(),
            Some(CollError::Short { .. } | CollError::Length { .. })
        )
}

/// What a message has to bring.
pub(super) struct Due {
    pub bytes: u64,
    /// For the sentence; a message under way keeps no communicator.
    pub comm: WeakComm,
    /// If it is in one that endures.
    pub invocation: Option<CheckedCall>,
}

impl Due {
    /// Judges how a receive ended.
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
