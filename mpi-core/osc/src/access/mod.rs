//! Accesses to a member's window: their location at the target, and the operations.
//!
//! | file | subject |
//! |---|---|
//! | [`location`] | the target location of an access, and the checks at the origin |
//! | [`transfer`] | put and get |
//! | [`accumulate`] | accumulate, get-accumulate, fetch-and-op, compare-and-swap |
//! | [`attach`] | attaching memory to dynamic windows, and finding it |

mod accumulate;
mod attach;
mod location;
mod transfer;

use crate::direct::apply::Memory;

/// The location of an access at the target.
pub(crate) enum TargetLocation<'a> {
    /// Memory that is reached directly; it starts where displacement and datatype start.
    Direct(Memory<'a>),
    /// Memory that is reached by messages: an offset into the target's window, or an address in a dynamic window.
    Message(u64),
}
