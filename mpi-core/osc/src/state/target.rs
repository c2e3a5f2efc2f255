//! The record of one member of a window.

use crate::btl::ProcId;
use crate::state::exclusion::Guard;
use mpi_base::window::Mode;
use std::cell::Cell;

/// The route to the memory of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// Mapped in this process; the address of its start.
    Here(*mut u8),
    /// Mapped by [`crate::direct::mapped`] for this process's accesses only; the address of its start.
    Mapped(*mut u8),
    /// Copied by the kernel, from and to the process with this id.
    Process(u32),
    /// Active messages.
    Message,
}

/// The lock of a member that this process holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    Nothing,
    /// `MPI_MODE_NOCHECK`: no lock was taken.
    Unchecked,
    /// A lock of a member on this node.
    Here(Mode),
    /// A lock that was requested by a message and granted before the call returned.
    There(Mode),
}

/// One member of a window.
pub(crate) struct Target {
    /// Start of its memory here, for accesses by plain copies; null if they are not allowed.
    pub plain: *mut u8,
    pub rank: u32,
    pub proc: ProcId,
    pub route: Route,
    /// Start of its memory in the owner's address space.
    pub address: u64,
    pub size: u64,
    pub unit: u64,
    /// Its index among the members on this node.
    pub here: Option<usize>,
    /// Whether accumulates to it need a lock, because some member cannot map it.
    pub locked: bool,
    /// The exclusion of passes over its memory, if it is on this node and the system can order them with atomic instructions.
    pub guard: Option<Guard>,
    pub held: Cell<Held>,
    /// Whether it is in the group of `MPI_Win_start`.
    pub started: Cell<bool>,
}

impl Target {
    /// Runs `update`, which updates elements of its memory by atomic instructions, unless such updates take locks now.
    /// Returns true if it has run.
    #[inline(always)]
    pub fn atomically(&self, update: impl FnOnce()) -> bool {
        let guard = self.guard.as_ref();
        // In one place, so that the compiler inlines it.
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
