//! The signature of a collective call, encoded as words and as text.

use super::{Call, CallId};
use crate::op::{Op, Predefined};
use std::fmt;

/// The form of a collective operation: blocking, nonblocking or persistent.
///
/// Operations of different forms do not match each other (MPI 5.0, sections 6.12 and 6.13).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    #[default]
    Blocking = 0,
    Nonblocking = 1,
    Persistent = 2,
}

/// The arguments of a member's call that must be equal on all members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallSignature {
    /// The [`CallId`], with the [`Form`] from bit [`FORM_SHIFT`] on.
    /// The flag [`IN_PLACE`] is set if the call uses `MPI_IN_PLACE` and the standard requires this of all members or none.
    call: u64,
    /// The root + 1, or zero for a call without root.
    root: u64,
    /// The handle value of a predefined operator, [`USER`] or [`USER_COMMUTES`], or zero for a call without operator.
    op: u64,
    /// The number of bytes + 1, or zero if it may differ between members.
    bytes: u64,
}

/// Position of the [`Form`] in the field `call`; a trace keeps the field's lower 16 bits.
const FORM_SHIFT: u32 = 12;
const FORM: u64 = 3 << FORM_SHIFT;

const _: () = assert!(CallId::ALL.len() < 1 << FORM_SHIFT);

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
        // (sections 6.8 and 6.10.1).
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
        // If each rank has its own count, the sum is left out: equal sums could hide differences.
        // The check compares the counts of each pair of ranks.
        let each = matches!(call, Call::Allgatherv { .. } | Call::ReduceScatter { .. });
        signature.bytes(call.agreed_bytes().filter(|_| !each))
    }

    /// Returns the signature of the same call in another form.
    #[inline]
    #[must_use]
    pub fn in_form(self, form: Form) -> CallSignature {
        CallSignature {
            call: self.call & !FORM | (form as u64) << FORM_SHIFT,
            ..self
        }
    }

    fn form(&self) -> Form {
        let forms = [Form::Blocking, Form::Nonblocking, Form::Persistent];
        let number = (self.call & FORM) >> FORM_SHIFT;
        let form = forms.into_iter().find(|form| *form as u64 == number);
        form.unwrap_or_default()
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

/// Returns the name of the MPI function for an operation in a form, for example `MPI_Iallgather`.
pub fn function(call: CallId, form: Form) -> String {
    let (first, rest) = call.name().split_at(1);
    let first = first.to_uppercase();
    match form {
        Form::Blocking => format!("MPI_{first}{rest}"),
        Form::Nonblocking => format!("MPI_I{}", call.name()),
        Form::Persistent => format!("MPI_{first}{rest}_init"),
    }
}

impl fmt::Display for CallSignature {
    /// Writes a description such as "MPI_Reduce to rank 2 of 400 bytes with MPI_SUM".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.call & !(IN_PLACE | FORM);
        let call = CallId::ALL.into_iter().find(|c| *c as u64 == number);
        let Some(call) = call else {
            return write!(f, "an unknown operation");
        };
        f.write_str(&function(call, self.form()))?;
        if self.call & IN_PLACE != 0 {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_has_its_function_and_survives_the_state_page_and_a_trace() {
        for (form, text) in [
            (Form::Blocking, "MPI_Allgather of 8 bytes"),
            (Form::Nonblocking, "MPI_Iallgather of 8 bytes"),
            (Form::Persistent, "MPI_Allgather_init of 8 bytes"),
        ] {
            let call = CallSignature::call(CallId::Allgather, None, None, Some(8)).in_form(form);
            let mut words = call.words();
            assert_eq!(CallSignature::from_words(&words), call);
            // A trace keeps 16 bits of the call.
            words[0] &= u64::from(u16::MAX);
            assert_eq!(CallSignature::from_words(&words).to_string(), text);
        }
    }
}
