//! The arguments of window creation, and the parameter that selects the components.

use mpi_base::param::{Param, Params, Selection};

/// The components that may be used, `--mca osc am`.
pub static SELECTION: Param<Selection> = Param::selection(
    "osc",
    "",
    "Components of one-sided communication that may be used; am is always allowed; empty: all",
);

/// Returns true if members on this node may be reached through memory. An invalid selection counts as "all"; it is reported elsewhere.
pub fn is_direct_allowed(params: &Params) -> bool {
    params
        .get(&SELECTION)
        .map_or(true, |selection| selection.allows("direct"))
}

/// Returns true if members on other nodes may be reached by the network itself. An invalid selection counts as "all"; it is reported elsewhere.
pub(crate) fn is_network_allowed(params: &Params) -> bool {
    params
        .get(&SELECTION)
        .map_or(true, |selection| selection.allows("network"))
}

/// The kind of a window: how it gets its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavor {
    /// Memory of the program.
    Create,
    Allocate,
    /// Allocated by the library and mapped by all members.
    Shared,
    /// Memory that is attached later.
    Dynamic,
}

/// Assertions and requests given when a window is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hints {
    /// The program uses no passive epochs.
    pub no_locks: bool,
    /// Segments of a shared window need not be contiguous.
    pub noncontiguous: bool,
    /// Alignment of the memory in bytes, a power of two.
    pub alignment: usize,
}

impl Default for Hints {
    fn default() -> Hints {
        Hints {
            no_locks: false,
            noncontiguous: false,
            alignment: 64,
        }
    }
}

/// The arguments of window creation.
#[derive(Clone, Debug)]
pub struct Spec {
    pub flavor: Flavor,
    /// The program's memory; ignored where the library allocates the memory.
    pub base: *mut u8,
    pub size: u64,
    pub unit: u64,
    pub hints: Hints,
}

/// The segment of a shared window that this process can load from and store to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedSegment {
    pub base: *mut u8,
    pub size: u64,
    pub unit: u64,
}
