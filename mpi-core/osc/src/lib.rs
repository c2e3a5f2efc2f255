//! OSC, one-sided communication: windows and RMA operations, which need no call by the target (MPI 5.0, chapter 12).
//!
//! One state machine of epochs (`state::epoch`) serves two components, one of which is chosen for each window and each target:
//! * **direct**: the target shares this node's memory. Its control words (`state::control`) are in shared memory. Its window is mapped if it is in an arena
//!   of the node, as memory of `MPI_Win_allocate`, `MPI_Win_allocate_shared` and `MPI_Alloc_mem` is, or if the kernel can map other memory (`direct::mapped`);
//!   otherwise the kernel copies (`process_vm_writev`).
//!   The origin never waits for the target to make progress.
//! * **am**: active messages over any transport that reaches the target (`am`). The target serves them inside any MPI call.
//!
//! Guarantee: accumulates of one basic type to one element are atomic on every route (`direct::apply`).
//!
//! | file | subject |
//! |---|---|
//! | `spec`, `target_args` | the arguments of window creation, and of an access |
//! | `state` | the parts of a window's state |
//! | `direct` | memory of this node |
//! | `win` | a window at one process, and its queries |
//! | `memory` | the memory of the members |
//! | `make` | window creation and `MPI_Win_free` |
//! | `sync` | epochs: active and passive synchronisation |
//! | `access` | put, get, accumulates, and attached memory |
//! | `am` | one-sided communication by active messages |
//! | `runs` | the contiguous runs of an access |
//! | `check` | detection of conflicting accesses |
//! | `traced` | trace records of accesses |
//! | `recorded` | the order of locks and accesses in a recorded or replayed run |
//!
//! The modules of `state` import no operation. Operations are methods of the parts of [`Win`], each part in a file of its own.

#![deny(unsafe_code)]

mod access;
mod am;
mod check;
mod direct;
mod error;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
mod make;
mod memory;
mod recorded;
mod runs;
mod spec;
mod state;
mod sync;
mod target_args;
#[cfg(test)]
mod tests;
mod traced;
mod win;

pub use am::Service;
pub use direct::mapped::{XPMEM, explain};
pub use error::{OscClass, OscError};
pub use mpi_base::window::Mode as LockMode;
pub use spec::{Flavor, Hints, SELECTION, SharedSegment, Spec, is_direct_allowed};
pub use state::epoch::Assert;
pub use state::open_accesses::CHECK;
pub use target_args::TargetArgs;
pub use win::Win;

// Modules of lower packages, under the names that this crate uses.
use mpi_coll as coll;
use mpi_engine::{comm, engine, matrix, record, trace};
use mpi_p2p::request;
use mpi_transport::{bml, btl};
use mpi_types::error::{Error, Failure};
use mpi_types::{datatype, group, op};
