//! Errors of point-to-point operations, with texts that name sender and receiver.

use crate::btl::ProcId;
use mpi_types::error::Failure;
use mpi_types::status::{ANY_TAG, Status};
use std::fmt;
use std::sync::Arc;

/// The reason why a point-to-point operation failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PmlError {
    /// The message is longer than the receive buffer.
    Truncated {
        receiver: i32,
        source: i32,
        tag: i32,
        bytes: u64,
        capacity: u64,
    },
    /// The type signatures of the message and the receive differ (reported with `pml_ob1_check_types`).
    Types {
        receiver: i32,
        source: i32,
        tag: i32,
        bytes: u64,
        /// The sender's count and datatype, such as "4 elements of MPI_INT".
        sent: Box<str>,
        expected: Box<str>,
    },
    /// No BTL can reach the peer; `reasons` contains one reason from each BTL.
    Unreachable { peer: ProcId, reasons: String },
    /// The peer ended before the operation was complete.
    PeerGone {
        peer: ProcId,
        tag: i32,
        bytes: u64,
        /// The transport's reason, if it reported one.
        why: Option<Arc<str>>,
    },
    /// A receive or probe waits, and every process that could send a matching message is lost.
    /// `lost` contains the transports' reasons.
    NoSender { tag: i32, lost: Vec<Arc<str>> },
}

impl PmlError {
    /// Returns the error of a message of `bytes` bytes that is longer than its receive buffer.
    #[cold]
    pub(super) fn truncated(
        receiver: i32,
        source: i32,
        tag: i32,
        bytes: u64,
        capacity: u64,
    ) -> PmlError {
        PmlError::Truncated {
            receiver,
            source,
            tag,
            bytes,
            capacity,
        }
    }
}

impl fmt::Display for PmlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PmlError::Truncated {
                receiver,
                source,
                tag,
                bytes,
                capacity,
            } => write!(
                f,
                "the message from rank {source} to rank {receiver} with tag {tag} has {bytes} bytes, but the receive buffer has {capacity}"
            ),
            PmlError::Types {
                receiver,
                source,
                tag,
                sent,
                expected,
                ..
            } => write!(
                f,
                "the message from rank {source} to rank {receiver} with tag {tag} was sent as {sent}, but the receive is of {expected}, whose basic types differ"
            ),
            PmlError::Unreachable { peer, reasons } => {
                write!(f, "no transport reaches job rank {peer}: {reasons}")
            }
            PmlError::PeerGone {
                peer,
                tag,
                bytes,
                why,
            } => match why {
                None => write!(
                    f,
                    "job rank {peer} has ended while {bytes} bytes with tag {tag} were on their way to or from it"
                ),
                Some(why) => write!(
                    f,
                    "{bytes} bytes with tag {tag} to or from job rank {peer} cannot arrive: {why}"
                ),
            },
            PmlError::NoSender { tag, lost } => {
                /// The maximum number of reasons in an error text; more would hide the first.
                const SHOWN: usize = 4;
                match *tag {
                    ANY_TAG => f.write_str("no message can come any more: ")?,
                    tag => write!(f, "no message with tag {tag} can come any more: ")?,
                }
                f.write_str(&lost[..lost.len().min(SHOWN)].join("; "))?;
                match lost.len().saturating_sub(SHOWN) {
                    0 => Ok(()),
                    more => write!(f, "; and {more} more are lost"),
                }
            }
        }
    }
}

impl std::error::Error for PmlError {}

impl Failure for PmlError {
    fn received(&self) -> Option<Status> {
        match *self {
            PmlError::Truncated {
                source,
                tag,
                capacity,
                ..
            } => Some(Status {
                source,
                tag,
                bytes: capacity,
                cancelled: false,
            }),
            PmlError::Types {
                source, tag, bytes, ..
            } => Some(Status {
                source,
                tag,
                bytes,
                cancelled: false,
            }),
            _ => None,
        }
    }
}
