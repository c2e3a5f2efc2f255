//! The other processes and their names, which are unique across jobs and the same on every process ([`Universe`](mpi_transport::universe::Universe)).

use super::Engine;
use crate::btl::ProcId;
use crate::comm::CommError;
use mpi_transport::universe::Name;

impl Engine {
    /// Returns the functions on other processes.
    #[inline]
    pub fn peers(&self) -> Peers<'_> {
        Peers { engine: self }
    }
}

/// The functions on other processes: names, and handling of failures ([`fault`](crate::fault)).
#[derive(Clone, Copy)]
pub struct Peers<'a> {
    engine: &'a Engine,
}

impl<'a> Peers<'a> {
    pub(crate) fn engine(self) -> &'a Engine {
        self.engine
    }

    /// Returns the name of a process; if the process is not known any more, a name that no process has.
    pub fn name_of(self, proc: ProcId) -> u64 {
        self.engine
            .universe()
            .name(proc)
            .map_or(u64::MAX, |Name(name)| name)
    }

    /// Returns the [`ProcId`] that this process uses for the process named `name`.
    pub(crate) fn proc_named(self, name: u64) -> Result<ProcId, CommError> {
        let known = self.engine.universe().proc(Name(name));
        known.ok_or(CommError::Unknown { name })
    }

    /// Releases one reference to each of these processes, and disconnects each process to which there is no other reference.
    pub(crate) fn disconnect(self, foreign: &[ProcId]) {
        for proc in self.engine.universe().release(foreign.iter().copied()) {
            self.engine.pml().disconnect(proc);
        }
    }
}
