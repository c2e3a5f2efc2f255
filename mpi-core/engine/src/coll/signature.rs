//! The signature of a collective call, encoded as words and as text.

use super::{Call, CallId};
use crate::op::{Op, Predefined};
use std::fmt;

/// The arguments of a member's call that must be equal on all members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallSignature {
    /// The [`CallId`], with the flag [`IN_PLACE`] if the call uses `MPI_IN_PLACE` and the standard requires this of all members or none.
    call: u64,
    /// The root + 1, or zero for a call without root.
    root: u64,
    /// The handle value of a predefined operator, [`USER`] or [`USER_COMMUTES`], or zero for a call without operator.
    op: u64,
    /// The number of bytes + 1, or zero if it may differ between members.
    bytes: u64,
}

/// Flag in the field `call`: the call uses `MPI_IN_PLACE`.
const IN_PLACE: u64 = 1 << 32;

const USER: u64 = u64::MAX;
const USER_COMMUTES: u64 = u64::MAX - 1;
const WORDS: usize = mpi_base::state::SIGNATURE_WORDS;

impl CallSignature {
    /// Returns the signature of a call.
    #[inline]
    pub fn of(call: &Call) -> CallSignature {
        let id = call.id() as u64;
        let signature = CallSignature {
            call: id,
            ..CallSignature::default()
        };
        let rooted = |root: &u32| CallSignature {
            root: u64::from(*root) + 1,
            ..signature
        };
        let signature = match call {
            Call::Bcast { root, .. }
            | Call::Gather { root, .. }
            | Call::Gatherv { root, .. }
            | Call::Scatter { root, .. }
            | Call::Scatterv { root, .. } => rooted(root),
            Call::Reduce { root, op, .. } => rooted(root).op(op),
            Call::Allreduce { op, .. }
            | Call::Scan { op, .. }
            | Call::Exscan { op, .. }
            | Call::ReduceScatter { op, .. }
            | Call::ReduceScatterBlock { op, .. } => signature.op(op),
            _ => signature,
        };
        // For these calls, the standard requires MPI_IN_PLACE on all processes or none
        // (6.8, 6.10.1).
        // In other calls some processes have no argument that could be MPI_IN_PLACE.
        let signature = match call {
            Call::Alltoall { send: None, .. }
            | Call::Alltoallv { send: None, .. }
            | Call::Alltoallw { send: None, .. }
            | Call::ReduceScatterBlock { send: None, .. } => CallSignature {
                call: signature.call | IN_PLACE,
                ..signature
            },
            _ => signature,
        };
        // If each rank has its own count, the sum is left out: it could hide differences, so the check compares pairwise counts.
        let each = matches!(call, Call::Allgatherv { .. } | Call::ReduceScatter { .. });
        signature.bytes(call.agreed_bytes().filter(|_| !each))
    }

    /// Returns the signature of a fast call with these arguments.
    #[inline(always)]
    pub(super) fn call(
        call: CallId,
        root: Option<u32>,
        op: Option<Predefined>,
        bytes: Option<u64>,
    ) -> CallSignature {
        CallSignature {
            call: call as u64,
            root: root.map_or(0, |root| u64::from(root) + 1),
            op: op.map_or(0, |op| op as u64),
            bytes: bytes.map_or(0, |bytes| bytes + 1),
        }
    }

    fn bytes(self, bytes: Option<i64>) -> CallSignature {
        let bytes = bytes.map_or(0, |bytes| bytes as u64 + 1);
        CallSignature { bytes, ..self }
    }

    fn op(self, op: &Op) -> CallSignature {
        let op = match op {
            Op::Predefined(op) => *op as u64,
            Op::User(_) if op.is_commutative() => USER_COMMUTES,
            Op::User(_) => USER,
        };
        CallSignature { op, ..self }
    }

    /// Encodes the signature as words for the state page.
    #[inline]
    pub fn words(&self) -> [u64; WORDS] {
        [self.call, self.root, self.op, self.bytes]
    }

    /// Decodes a signature; missing words count as zero.
    pub fn from_words(words: &[u64]) -> CallSignature {
        let word = |at: usize| words.get(at).copied().unwrap_or(0);
        CallSignature {
            call: word(0),
            root: word(1),
            op: word(2),
            bytes: word(3),
        }
    }
}

/// Returns the name of the function in the standard.
pub fn function(call: CallId) -> String {
    let (first, rest) = call.name().split_at(1);
    format!("MPI_{}{rest}", first.to_uppercase())
}

impl fmt::Display for CallSignature {
    /// Example: "MPI_Reduce to rank 2 of 400 bytes with MPI_SUM".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.call & !IN_PLACE;
        let call = CallId::ALL.into_iter().find(|c| *c as u64 == number);
        let Some(call) = call else {
            return write!(f, "an unknown operation");
        };
        f.write_str(&function(call))?;
        if self.call != number {
            f.write_str(" in place")?;
        }
        if let Some(root) = self.root.checked_sub(1) {
            let way = match call {
                CallId::Bcast | CallId::Scatter | CallId::Scatterv => "from",
                _ => "to",
            };
            write!(f, " {way} rank {root}")?;
        }
        if let Some(bytes) = self.bytes.checked_sub(1) {
            write!(f, " of {bytes} bytes")?;
        }
        match self.op {
            0 => Ok(()),
            USER => write!(f, " with a user's operator that does not commute"),
            USER_COMMUTES => write!(f, " with a user's operator that commutes"),
            value => {
                let op = Predefined::ALL.into_iter().find(|op| *op as u64 == value);
                write!(
                    f,
                    " with {}",
                    op.map_or("an unknown operator", Predefined::name)
                )
            }
        }
    }
}
