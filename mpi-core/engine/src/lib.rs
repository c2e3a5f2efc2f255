//! The engine: progress, waiting and communicators, on top of the point-to-point messages of `mpi-p2p`.
//!
//! Collective operations are values ([`coll::Call`]); the components that carry them out are used through traits ([`comm::Framework`], [`comm::Collectives`]).
//! The package does not depend on any component or algorithm.
//!
//! [`dynamic`] connects jobs: ports, accept and connect.
//! [`fault`] is fault tolerance: failures, revocation, agreement, shrinking.
//!
//! In addition to [`Engine`] and [`comm::Comm`], the layers above use:
//! * [`comm::Conversation`], [`comm::ControlGroup`], [`comm::U64Buf`]: internal messages among members;
//! * [`engine::ProgressHook`], [`engine::PollAlways`]: callbacks from this process's progress;
//! * [`Engine::extension`]: storage for the layers above, for one value per type and engine.

#![deny(unsafe_code)]

pub mod buffered;
pub mod coll;
pub mod comm;
pub mod dynamic;
pub mod engine;
pub mod fault;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
pub mod matrix;
mod node_members;
mod observer;
pub mod partitioned;
pub mod persistent;
pub mod record;
pub mod trace;

pub use engine::Engine;
pub use node_members::NodeMembers;
pub use observer::{ObserverError, RunObserver};

use mpi_p2p::{pml, request};
use mpi_transport::{bml, btl};
use mpi_types::{
    datatype,
    error::{Error, Failure},
    group, op, topo,
};
