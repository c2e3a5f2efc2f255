//! OSC, one-sided communication: windows and RMA operations, which need no call by the target (MPI 5.0, chapter 12).
//!
//! One state machine of epochs (`epoch`) serves two components, one of which is chosen for each window and each target:
//! * **direct**: the target shares this node's memory. Its control words (`control`) are in shared memory. Its window is mapped if it is in an arena
//!   of the node, as memory of `MPI_Win_allocate`, `MPI_Win_allocate_shared` and `MPI_Alloc_mem` is, or if the kernel can map other memory (`mapped`);
//!   otherwise the kernel copies (`process_vm_writev`).
//!   The origin never waits for the target to make progress.
//! * **am**: active messages over any transport that reaches the target (`am`). The target serves them inside any MPI call.
//!
//! Guarantee: accumulates of one basic type to one element are atomic on every route (`apply`).
//!
//! | file | subject |
//! |---|---|
//! | `win` | the state of a window and its queries |
//! | `target`, `epoch`, `control`, `attached`, `accesses`, `turns` | parts of that state: the record of each member, which accesses are allowed, the control words in shared memory, attached memory, incomplete accesses, the access order of a recorded run |
//! | `make` | window creation and `MPI_Win_free` |
//! | `active` | fence, post, start, complete, wait |
//! | `passive` | locks and flushes |
//! | `access` | the arguments and the kind of an access |
//! | `spot` | the target location of an access, and the checks at the origin |
//! | `transfer` | put and get |
//! | `accumulate` | accumulate, get-accumulate, fetch-and-op, compare-and-swap |
//! | `runs` | the contiguous runs of an access |
//! | `apply` | one operator on elements in memory, atomically |
//! | `word` | one operator on one word by one atomic instruction |
//! | `attach` | attaching memory to dynamic windows, and looking it up |
//! | `mapped` | memory outside of the arenas, mapped by XPMEM |
//! | `check` | detection of conflicting accesses |
//! | `neighbours` | incomplete accesses of the other members on the node |
//! | `wait` | waiting for another member |
//! | `traced` | trace records of accesses |
//! | `recorded` | the order of locks and accesses in a recorded or replayed run |
//! | `am` | one-sided communication by active messages |
//!
//! The modules of the state import no operation. Each operation adds its methods to [`Win`] in a file of its own.

#![deny(unsafe_code)]

mod access;
mod accesses;
mod accumulate;
mod active;
mod am;
mod apply;
mod attach;
mod attached;
mod check;
mod control;
mod epoch;
mod error;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
mod make;
mod mapped;
mod neighbours;
mod passive;
mod recorded;
mod runs;
mod spot;
mod target;
#[cfg(test)]
mod tests;
mod traced;
mod transfer;
mod turns;
mod wait;
mod win;
mod word;

pub use access::There;
pub use accesses::CHECK;
pub use am::Service;
pub use epoch::Assert;
pub use error::{OscClass, OscError};
pub use mapped::{XPMEM, explain};
pub use mpi_base::window::Mode as LockMode;
pub use win::Win;

// Modules of lower packages, under the names that this crate uses.
use mpi_coll as coll;
use mpi_engine::{comm, engine, record, trace};
use mpi_p2p::request;
use mpi_transport::{bml, btl};
use mpi_types::error::{Error, Failure};
use mpi_types::{datatype, group, op};

use mpi_base::param::{Param, Params, Selection};

/// The components that may be used, `--mca osc am`.
pub static SELECTION: Param<Selection> = Param::selection(
    "osc",
    "",
    "Components of one-sided communication that may be used besides am, which always may; both, if empty",
);

/// Returns true if members on this node may be reached through memory. An invalid selection counts as "all"; it is reported elsewhere.
pub fn is_direct_allowed(params: &Params) -> bool {
    params
        .get(&SELECTION)
        .map_or(true, |selection| selection.allows("direct"))
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
