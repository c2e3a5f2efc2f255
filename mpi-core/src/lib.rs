//! The MPI engine: everything below the C symbols, as values.
//!
//! A folder is a framework and a file or subfolder in it is a component, as in Open MPI's modular component architecture.
//! `mpi-core` never learns that hardware exists, and it holds no process-wide state:
//! a test runs four ranks as four threads of one process.

pub mod bml;
pub mod btl;
pub mod coll;
pub mod comm;
pub mod datatype;
pub mod engine;
mod error;
pub mod group;
pub mod op;
pub mod osc;
pub mod plugin;
pub mod pml;
pub mod record;
pub mod request;
pub mod rte;
pub mod topo;
pub mod trace;
mod trial;
mod witness;

pub use engine::Engine;
pub use error::{Error, ErrorKind};
pub use witness::{Witness, WitnessError};

/// For the tests of this crate and of crates with components of their own: jobs whose ranks are threads, and the claims that components join.
#[cfg(any(test, feature = "testing"))]
pub mod testing {
    pub use crate::coll::suite::barrier;
    pub use crate::engine::testing::*;
}
