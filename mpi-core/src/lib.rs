//! The MPI library below the C symbols, as Rust values.
//!
//! This package only re-exports its parts, packages of which each depends only on earlier ones:
//! `mpi-types` (values), `mpi-transport` (bytes), `mpi-p2p` (matching and protocols), `mpi-engine` (progress and communicators), `mpi-coll` (collectives),
//! `mpi-osc` (windows), `mpi-io` (files), `mpi-crs` (checkpoints).
//! `mpi-core` contains no code for particular hardware, and no process-wide state:
//! a test runs four ranks as four threads of a process.

#![deny(unsafe_code)]

pub use mpi_coll::{self as coll, plugin};
pub use mpi_engine::{
    Engine, ObserverError, RunObserver, comm, dynamic, fault, matrix, record, trace,
};
pub use mpi_p2p::observer;
pub use mpi_transport::{bml, btl, rte, universe};
pub use mpi_types::error::{Error, Failure};
pub use mpi_types::{datatype, group, op, topo};
pub use {mpi_crs as crs, mpi_io as io, mpi_osc as osc};

/// The engine: progress, waiting and communicators.
pub mod engine {
    #[cfg(feature = "testing")]
    pub use mpi_coll::testing;
    pub use mpi_engine::engine::*;
}

/// Point-to-point messages: the protocols, and buffered sends.
pub mod pml {
    pub use mpi_engine::buffered;
    pub use mpi_p2p::pml::*;
}

/// Requests, and persistent and partitioned operations.
pub mod request {
    pub use mpi_engine::partitioned::{
        PartitionError, Partitioned, PartitionedRecv, PartitionedSend,
    };
    pub use mpi_engine::persistent::{Operation, Persistent};
    pub use mpi_p2p::request::*;
}

/// For tests of packages with components of their own: jobs whose ranks are threads, and the test suites of components.
#[cfg(feature = "testing")]
pub mod testing {
    pub use mpi_coll::suite::barrier;
    pub use mpi_coll::testing::*;
}
