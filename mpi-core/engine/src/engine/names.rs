//! Processes by their names, which mean the same at every process ([`Universe`](mpi_transport::universe::Universe)).

use super::Engine;
use crate::btl::ProcId;
use crate::comm::CommError;
use mpi_transport::universe::Name;

impl Engine {
    /// The name of a process at every process; one that is not known any more has a name that no process has.
    pub fn name_of(&self, proc: ProcId) -> u64 {
        self.universe()
            .name(proc)
            .map_or(u64::MAX, |Name(name)| name)
    }

    /// This process's number for the process of a name.
    pub(crate) fn proc_named(&self, name: u64) -> Result<ProcId, CommError> {
        let known = self.universe().proc(Name(name));
        known.ok_or(CommError::Unknown { name })
    }

    /// The last communicator that named them may have gone.
    pub(crate) fn part_from(&self, foreign: &[ProcId]) {
        for proc in self.universe().release(foreign.iter().copied()) {
            self.pml().part_from(proc);
        }
    }
}
