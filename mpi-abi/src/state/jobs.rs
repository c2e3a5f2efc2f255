//! The jobs to which this process is connected.

use crate::abi::{MPI_COMM_NULL, MPI_Comm};
use mpi_core::dynamic::PortName;
use std::cell::{Cell, RefCell};

/// The jobs to which this process is connected.
pub(crate) struct Jobs {
    parent: Cell<MPI_Comm>,
    connections: RefCell<Vec<u64>>,
    spawning: RefCell<Vec<(String, PortName)>>,
}

impl Jobs {
    pub(super) const fn new() -> Jobs {
        Jobs {
            parent: Cell::new(MPI_COMM_NULL),
            connections: RefCell::new(Vec::new()),
            spawning: RefCell::new(Vec::new()),
        }
    }

    /// Returns the intercommunicator to the job that spawned this job, or the null handle.
    #[inline(always)]
    pub fn parent(&self) -> &Cell<MPI_Comm> {
        &self.parent
    }

    /// Returns the connected jobs, as last reported to the launcher.
    #[inline(always)]
    pub fn connections(&self) -> &RefCell<Vec<u64>> {
        &self.connections
    }

    /// Returns the spawns in progress: the job names, and the ports to which the new jobs connect.
    #[inline(always)]
    pub fn spawning(&self) -> &RefCell<Vec<(String, PortName)>> {
        &self.spawning
    }
}
