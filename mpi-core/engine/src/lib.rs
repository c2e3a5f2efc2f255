//! The engine: progress, waiting and communicators, over the messages of `mpi-p2p`.
//!
//! It knows collective operations as values ([`coll::Call`]) and the components that carry them out by two traits ([`comm::Framework`], [`comm::Collectives`]);
//! no component and no algorithm can be named here, since the package does not depend on theirs.
//!
//! [`dynamic`] connects jobs: ports, accept and connect.
//! [`fault`] survives the death of processes: failures, revocation, agreement, shrinking.
//!
//! What the layers above use beside [`Engine`] and [`comm::Comm`]:
//! * [`comm::Conversation`], [`comm::ControlGroup`], [`comm::U64Buf`]: messages of the library's own among members;
//! * [`engine::ProgressHook`], [`engine::PollAlways`]: being asked whenever this process makes progress;
//! * [`Engine::extension`]: one value of a type per process, for a layer that the engine does not know.

#![deny(unsafe_code)]

pub mod buffered;
pub mod coll;
pub mod comm;
pub mod dynamic;
pub mod engine;
pub mod fault;
mod node_members;
mod observer;
pub mod partitioned;
pub mod persistent;
pub mod record;
pub mod trace;

pub use engine::Engine;
pub use node_members::NodeMembers;
pub use observer::{Witness, WitnessError};

use mpi_p2p::{pml, request};
use mpi_transport::{bml, btl};
use mpi_types::{
    datatype,
    error::{Error, Failure},
    group, op, topo,
};
