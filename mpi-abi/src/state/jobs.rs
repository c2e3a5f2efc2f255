//! The jobs that this process is connected with.

use crate::abi::{MPI_COMM_NULL, MPI_Comm};
use mpi_core::dynamic::PortName;
use std::cell::{Cell, RefCell};

/// The jobs that this process is connected with.
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

    /// The communicator with the job that spawned this one, if any.
    #[inline(always)]
    pub fn parent(&self) -> &Cell<MPI_Comm> {
        &self.parent
    }

    /// The jobs that this process is connected with, as last reported to the launcher.
    #[inline(always)]
    pub fn connections(&self) -> &RefCell<Vec<u64>> {
        &self.connections
    }

    /// Jobs that are being spawned: their names, and the ports at which this process waits for them.
    #[inline(always)]
    pub fn spawning(&self) -> &RefCell<Vec<(String, PortName)>> {
        &self.spawning
    }
}
