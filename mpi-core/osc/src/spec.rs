//! The arguments of window creation, and the parameter that selects the components.

use mpi_base::node::Contents;
use mpi_base::param::{Param, Params, Selection};

/// Parameter `osc`: the components that may be used, for example `--mca osc am`.
pub static SELECTION: Param<Selection> = Param::selection(
    "osc",
    "",
    "Components of one-sided communication that may be used; am is always allowed; empty: all",
);

/// Returns true if the component `direct` is allowed.
/// An invalid selection counts as "all"; startup reports it.
pub fn is_direct_allowed(params: &Params) -> bool {
    params
        .get(&SELECTION)
        .map_or(true, |selection| selection.allows("direct"))
}

/// Returns true if the component `network` is allowed.
/// An invalid selection counts as "all"; startup reports it.
pub(crate) fn is_network_allowed(params: &Params) -> bool {
    params
        .get(&SELECTION)
        .map_or(true, |selection| selection.allows("network"))
}

/// The flavor of a window: its creation call, which determines the origin of the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavor {
    /// The program provides the memory.
    Create,
    Allocate,
    /// The library allocates the memory, and all members map it.
    Shared,
    /// The program attaches memory later.
    Dynamic,
}

/// The info hints of a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hints {
    /// The hint `no_locks`: the program uses no passive epochs.
    pub no_locks: bool,
    /// The hint `noncontiguous`: segments of a shared window need not be contiguous.
    pub noncontiguous: bool,
    /// The alignment of the memory in bytes, a power of 2.
    pub alignment: usize,
    /// The contents of new memory in an arena; not a hint of programs, whose windows are zeroed.
    pub contents: Contents,
}

impl Default for Hints {
    fn default() -> Hints {
        Hints {
            no_locks: false,
            noncontiguous: false,
            alignment: 64,
            contents: Contents::Zeroes,
        }
    }
}

/// The arguments of window creation.
#[derive(Clone, Debug)]
pub struct Spec {
    pub flavor: Flavor,
    /// The program's memory; ignored if the library allocates the memory.
    pub base: *mut u8,
    pub size: u64,
    pub unit: u64,
    pub hints: Hints,
}

/// A member's segment of a window that this process can load from and store to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedSegment {
    pub base: *mut u8,
    pub size: u64,
    pub unit: u64,
}
