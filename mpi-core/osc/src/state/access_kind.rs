//! The kind of an access. The kinds of two overlapping accesses determine whether they conflict.

use crate::datatype::Kind;

/// The kind of an access: its effect on the target's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccessKind {
    Write,
    Read,
    /// Accumulate: one atomic update per element of this type.
    Update(Kind),
}

impl AccessKind {
    pub fn conflicts_with(self, other: AccessKind) -> bool {
        match (self, other) {
            (AccessKind::Read, AccessKind::Read) => false,
            (AccessKind::Update(a), AccessKind::Update(b)) => a != b,
            _ => true,
        }
    }
}
