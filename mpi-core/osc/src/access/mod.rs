//! Accesses to a member's window: the location at the target, and the operations.
//!
//! | file | subject |
//! |---|---|
//! | [`location`] | the target location of an access, and the checks at the origin |
//! | [`transfer`] | put and get |
//! | [`accumulate`] | accumulate, get-accumulate, fetch-and-op, compare-and-swap |
//! | [`attach`] | attached memory of dynamic windows: attach, detach, published tables |
//! | [`attached`] | the target location of an access to attached memory |
//! | [`parts`], [`divided`] | accesses whose parts are reached by different methods |

mod accumulate;
mod attach;
mod attached;
mod divided;
mod location;
mod parts;
mod transfer;

use crate::direct::apply::Memory;
pub(crate) use parts::{Part, Parts, check_elements, cut};

/// The location of an access at the target.
pub(crate) enum TargetLocation<'a> {
    /// Memory that this process accesses directly. It starts at the displacement of the access.
    Direct(Memory<'a>),
    /// Memory that this process accesses by messages or by the network.
    /// The value is an offset into the target's window, or an address in a dynamic window.
    Message(u64),
    /// Attached regions of a dynamic window that this process accesses by different methods.
    Parts(Parts<'a>),
}
