//! The MPI engine: everything below the C symbols, as values.
//!
//! A folder is a framework and a file or subfolder in it is a component, as in Open MPI's modular component architecture.
//! `mpi-core` never learns that hardware exists, and it holds no process-wide state:
//! a test runs four ranks as four threads of one process.

pub mod buffered;
pub mod coll;
pub mod comm;
pub mod engine;
mod partitioned;
mod persistent;
pub mod plugin;
pub mod record;
pub mod trace;
mod witness;

pub use mpi_transport::{bml, btl, rte};
pub use mpi_types::{datatype, group, op, topo};

use mpi_transport::trial;

pub use engine::Engine;
pub use mpi_types::error::{Error, Failure};
pub use witness::{Witness, WitnessError};

/// Point-to-point messages: the protocols, and what is built on communicators.
pub mod pml {
    pub use crate::buffered;
    pub use mpi_p2p::pml::*;
}

/// Requests, and the operations that can be started again.
pub mod request {
    pub use crate::partitioned::{PartitionError, Partitioned, PartitionedRecv, PartitionedSend};
    pub use crate::persistent::{Operation, Persistent};
    pub use mpi_p2p::request::*;
}

/// For the tests of this crate and of crates with components of their own: jobs whose ranks are threads, and the claims that components join.
#[cfg(any(test, feature = "testing"))]
pub mod testing {
    pub use crate::coll::suite::barrier;
    pub use crate::engine::testing::*;
}
