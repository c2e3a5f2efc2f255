//! What an open file keeps between calls: a split collective that has begun, and memory that its members share.

use super::staged::Stages;
use std::rc::Rc;

/// A split collective that has begun: what it is, and how many bytes it has moved.
pub(super) struct Split {
    pub(super) call: &'static str,
    pub(super) bytes: i64,
}

/// The shared memory of collective accesses.
#[derive(Default)]
pub(super) enum Staging {
    #[default]
    Untried,
    Ready(Rc<Stages>),
    /// Memory cannot be shared, or the members are on several nodes that have one each.
    Impossible,
}
