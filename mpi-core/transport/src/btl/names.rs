//! What the ends of a connection call each other.

use mpi_base::proc::ProcId;

/// How processes are called in a connection's first message, where each end has numbers of its own for them.
pub trait Names: Send + Sync {
    /// What a process is called; `None` if it is not known.
    fn name(&self, proc: ProcId) -> Option<u64>;

    /// Whether a process of this name could call, before it has proved anything.
    fn may_call(&self, name: u64) -> bool;

    /// The two ends of a connection, for sentences.
    fn ends(&self, me: ProcId, peer: ProcId) -> String;

    /// This process's number for a caller of this name, which has proved that it knows the key; `None` turns it away.
    fn admit(&self, name: u64) -> Option<ProcId>;

    /// Whether no communicator and no call names a process of another job any more, so that no connection to it is begun.
    fn is_unused(&self, _proc: ProcId) -> bool {
        false
    }

    /// A connection to a process has begun; the number stays that process's at least until [`Names::disconnected`].
    fn connected(&self, _proc: ProcId) {}

    /// A connection to a process has ended, or was never made; a process that nothing names any more is forgotten.
    fn disconnected(&self, _proc: ProcId) {}

    /// Forgets a process of another job that was admitted and came to nothing.
    fn forget_if_idle(&self, _proc: ProcId) {}
}

/// In a job every process has the same numbers.
pub(crate) struct JobNames {
    pub size: u32,
}

impl Names for JobNames {
    fn name(&self, proc: ProcId) -> Option<u64> {
        (proc < self.size).then_some(proc.into())
    }

    fn may_call(&self, name: u64) -> bool {
        name < self.size.into()
    }

    fn ends(&self, me: ProcId, peer: ProcId) -> String {
        format!("job ranks {me} and {peer}")
    }

    fn admit(&self, name: u64) -> Option<ProcId> {
        ProcId::try_from(name).ok().filter(|proc| *proc < self.size)
    }
}
