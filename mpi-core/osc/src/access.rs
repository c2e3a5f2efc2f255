//! An access to a member's window: its arguments at the target, its kind, and the target location.

use super::apply::Memory;
use crate::datatype::{Datatype, Kind};

/// The target arguments of an access.
#[derive(Clone, Copy)]
pub struct TargetArgs<'a> {
    pub rank: i32,
    pub disp: i64,
    pub count: i64,
    pub datatype: &'a Datatype,
}

/// The kind of an access: what it does to the target's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AccessKind {
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

/// The location of an access at the target.
pub(super) enum TargetLocation<'a> {
    /// Memory that is reached directly; it starts where displacement and datatype start.
    Direct(Memory<'a>),
    /// Memory that is reached by messages: an offset into the target's window, or an address in a dynamic window.
    Message(u64),
}
