//! The other processes and their names, which are unique across jobs and the same at every process ([`Universe`](mpi_transport::universe::Universe)).

use super::Engine;
use crate::btl::ProcId;
use crate::comm::CommError;
use mpi_transport::universe::Name;

impl Engine {
    /// Returns the other processes.
    #[inline]
    pub fn peers(&self) -> Peers<'_> {
        Peers { engine: self }
    }
}

/// The other processes: their names, and the handling of lost processes ([`fault`](crate::fault)).
#[derive(Clone, Copy)]
pub struct Peers<'a> {
    engine: &'a Engine,
}

impl<'a> Peers<'a> {
    pub(crate) fn engine(self) -> &'a Engine {
        self.engine
    }

    /// Returns the global name of a process; for a process that is no longer known, a name that no process has.
    pub fn name_of(self, proc: ProcId) -> u64 {
        self.engine
            .universe()
            .name(proc)
            .map_or(u64::MAX, |Name(name)| name)
    }

    /// Returns this process's number for the process with a name.
    pub(crate) fn proc_named(self, name: u64) -> Result<ProcId, CommError> {
        let known = self.engine.universe().proc(Name(name));
        known.ok_or(CommError::Unknown { name })
    }

    /// Drops one reference to each of these processes, and disconnects each process whose last reference it was.
    pub(crate) fn disconnect(self, foreign: &[ProcId]) {
        for proc in self.engine.universe().release(foreign.iter().copied()) {
            self.engine.pml().disconnect(proc);
        }
    }
}
