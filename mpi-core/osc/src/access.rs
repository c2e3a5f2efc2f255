//! An access to a member's window: what it is about, what it does there, and where it goes.

use super::apply::Memory;
use crate::datatype::{Datatype, Kind};

/// The part of a target's window that an access is about.
#[derive(Clone, Copy)]
pub struct There<'a> {
    pub rank: i32,
    pub disp: i64,
    pub count: i64,
    pub datatype: &'a Datatype,
}

/// What an access does to the target's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Does {
    Write,
    Read,
    /// One step for each element of this type.
    Update(Kind),
}

impl Does {
    pub fn conflicts_with(self, other: Does) -> bool {
        match (self, other) {
            (Does::Read, Does::Read) => false,
            (Does::Update(a), Does::Update(b)) => a != b,
            _ => true,
        }
    }
}

/// Where an access goes.
pub(super) enum Spot<'a> {
    /// Where displacement and datatype start, in memory that is reached directly.
    Direct(Memory<'a>),
    /// The same as an offset into the target's window, or an address in a dynamic one.
    Message(u64),
}
