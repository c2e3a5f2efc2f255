//! OSC, one-sided communication: windows and RMA operations without a call by the target
//! (MPI 5.0, chapter 12).
//!
//! One state machine of epochs (`state::epoch`) serves all components.
//! The library chooses a component for each pair of window and target:
//! * **direct**: the target shares this node's memory.
//!   Its control words (`state::control`) are in shared memory.
//!   Its window is mapped if its memory is in an arena of the node: `MPI_Win_allocate`,
//!   `MPI_Win_allocate_shared`, `MPI_Alloc_mem`.
//!   Other memory is mapped through XPMEM (`direct::mapped`),
//!   or the kernel copies it (`process_vm_writev`).
//!   The origin never waits for the target to make progress.
//! * **am**: active messages over any transport that reaches the target (`am`).
//!   The target serves them inside any MPI call.
//! * **network**: put and get by the network (`network`), to targets of the component **am**.
//!
//! Guarantee: accumulates of one basic type to one element are atomic in **direct** and **am**
//! (`direct::apply`).
//!
//! | file | subject |
//! |---|---|
//! | `spec`, `target_args` | the arguments of window creation, and of an access |
//! | `state` | the state of a window: epochs, control words, targets |
//! | `direct` | accesses to memory of this node |
//! | `win` | the handle of a window at one process, and its queries |
//! | `memory` | queries of the members' memory: addresses, locks, shared segments |
//! | `make` | window creation and `MPI_Win_free` |
//! | `sync` | epochs: active and passive synchronisation |
//! | `access` | put, get, accumulates, and attached memory |
//! | `am` | one-sided communication by active messages |
//! | `network` | put and get by the network, in registered memory |
//! | `runs` | the contiguous runs of an access |
//! | `check` | detection of conflicting accesses |
//! | `traced` | records of accesses for traces and the communication matrix |
//! | `recorded` | the order of locks and accesses in a recorded or replayed job |
//!
//! The modules of `state` do not depend on the operations.
//! The operations are methods of view types of [`Win`], each view type in a separate file.

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
mod network;
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
