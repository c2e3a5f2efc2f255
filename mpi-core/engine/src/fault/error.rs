//! Errors of operations after a process failure or a revocation.

use crate::Failure;
use std::fmt;

/// The kind of a fault-tolerance error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// `MPIX_ERR_PROC_FAILED`: a process that the operation needs has failed.
    Failed,
    /// `MPIX_ERR_PROC_FAILED_PENDING`: a receive from any source is still in progress, but a process that could match it has failed.
    Pending,
    /// `MPIX_ERR_REVOKED`: the communicator has been revoked.
    Revoked,
}

/// A fault-tolerance error with its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultError {
    kind: FaultKind,
    sentence: String,
}

impl FaultError {
    /// Returns the error that members of a communicator have failed; `members` are texts about some of them, `more` counts the others.
    pub(crate) fn failed(comm: &str, members: &[String], more: usize) -> FaultError {
        let more = match more {
            0 => String::new(),
            more => format!("; and {more} more have failed"),
        };
        FaultError {
            kind: FaultKind::Failed,
            sentence: format!("{comm}: {}{more}", members.join("; ")),
        }
    }

    pub(crate) fn revoked(comm: &str) -> FaultError {
        FaultError {
            kind: FaultKind::Revoked,
            sentence: format!(
                "{comm} has been revoked; it can only be shrunk, agreed on and freed"
            ),
        }
    }

    /// Returns the same error for a receive that stays in progress.
    pub(crate) fn pending(&self) -> FaultError {
        FaultError {
            kind: FaultKind::Pending,
            sentence: format!(
                "the receive from any source is still in progress and may complete once the failure is acknowledged: {}",
                self.sentence
            ),
        }
    }

    /// Returns the same error for a blocking call, after which no receive is in progress.
    pub(crate) fn of_blocking(&self) -> FaultError {
        FaultError {
            kind: match self.kind {
                FaultKind::Pending => FaultKind::Failed,
                kind => kind,
            },
            sentence: self.sentence.replacen(
                "the receive from any source is still in progress and may complete once the failure is acknowledged: ",
                "",
                1,
            ),
        }
    }

    /// Returns the kind of this error.
    pub fn kind(&self) -> FaultKind {
        self.kind
    }
}

impl fmt::Display for FaultError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for FaultError {}

impl Failure for FaultError {}

/// Returns true if an error reports the death of a process.
pub(crate) fn is_about_deaths(error: &crate::Error) -> bool {
    error.find::<FaultError>().is_some()
        || matches!(
            error.find(),
            Some(mpi_p2p::pml::PmlError::PeerGone { .. } | mpi_p2p::pml::PmlError::NoSender { .. })
        )
}
