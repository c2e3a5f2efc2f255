//! The record of one member of a window.

use crate::btl::ProcId;
use crate::state::exclusion::Guard;
use mpi_base::window::Mode;
use std::cell::Cell;

/// The method by which this process accesses the memory of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// The memory is mapped in this process at this address.
    Here(*mut u8),
    /// [`crate::direct::mapped`] maps the memory at this address, for this process's accesses only.
    Mapped(*mut u8),
    /// The kernel copies from and to the process with this process id.
    Process(u32),
    /// This process accesses the memory by active messages or by the network.
    Message,
}

/// The lock of a member that this process holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    Nothing,
    /// The program passed `MPI_MODE_NOCHECK`, so no lock was taken.
    Unchecked,
    /// A lock of a member on this node.
    Here(Mode),
    /// A lock of a member on another node, granted by a message.
    There(Mode),
}

/// One member of a window.
pub(crate) struct Target {
    /// The local address of the member's memory for plain copies; null if they are not allowed.
    pub plain: *mut u8,
    pub rank: u32,
    pub proc: ProcId,
    pub route: Route,
    /// The start of the member's memory in the owner's address space.
    pub address: u64,
    pub size: u64,
    pub unit: u64,
    /// The member's index among the members on this node; `None` for a member on another node.
    pub here: Option<usize>,
    /// True if accumulates need a stripe lock, because some member cannot map the memory.
    pub locked: bool,
    /// The exclusion state for passes over the member's memory;
    /// `None` if the member is on another node,
    /// or if the system cannot order passes with atomic instructions.
    pub guard: Option<Guard>,
    pub held: Cell<Held>,
    /// True if the member is in the group of `MPI_Win_start`.
    pub started: Cell<bool>,
}

impl Target {
    /// Runs `update`, which uses atomic instructions, unless updates of this memory take locks now.
    /// Returns true if `update` has run.
    #[inline(always)]
    pub fn atomically(&self, update: impl FnOnce()) -> bool {
        let guard = self.guard.as_ref();
        // A single call of `update` in the source lets the compiler inline it.
        let allowed = guard.is_none_or(Guard::begin);
        if allowed {
            update();
        }
        if let Some(guard) = guard {
            guard.end();
        }
        allowed
    }
}
