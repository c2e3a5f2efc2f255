//! What is known of each member's part of a window.

use crate::btl::ProcId;
use mpi_base::window::Mode;
use std::cell::Cell;

/// How this process reaches the memory of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// It is mapped here: its beginning.
    Here(*mut u8),
    /// It is mapped here by [`super::mapped`], for this process's own use: its beginning.
    Mapped(*mut u8),
    /// The system copies.
    Process(u32),
    /// By active messages.
    Message,
}

/// Which lock of a member this process holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held {
    Nothing,
    /// Asserted that no lock is needed.
    Unchecked,
    /// A lock of a member on this node.
    Here(Mode),
    /// Asked for by a message; granted before the call returned.
    There(Mode),
}

/// One member's part of a window.
pub(super) struct Target {
    /// Where it begins here, for accesses that need no more than a copy; null where there are none.
    pub plain: *mut u8,
    pub rank: u32,
    pub proc: ProcId,
    pub route: Route,
    /// Where it begins at its owner.
    pub address: u64,
    pub size: u64,
    pub unit: u64,
    /// Its index among the members on this node.
    pub here: Option<usize>,
    /// Whether accumulates to it need a lock, because some member cannot map it.
    pub locked: bool,
    pub held: Cell<Held>,
    /// Whether it is in the group of the access epoch that was started.
    pub started: Cell<bool>,
}
