//! Names of processes in the handshake of a connection.

use mpi_base::proc::ProcId;

/// The mapping between this process's own numbers of its peers and the names that a connection's first message contains.
pub trait Names: Send + Sync {
    /// Returns the name of a process; `None` if it is unknown.
    fn name(&self, proc: ProcId) -> Option<u64>;

    /// Returns true if a process with this name may connect.
    /// This is checked before the process has authenticated itself.
    fn may_call(&self, name: u64) -> bool;

    /// Returns the names of the two processes of a connection, for error texts.
    fn ends(&self, me: ProcId, peer: ProcId) -> String;

    /// Returns this process's number for an authenticated process with this name; `None` rejects the process.
    fn admit(&self, name: u64) -> Option<ProcId>;

    /// Returns true if no communicator and no pending call refers to a process of another job; then no connection to the process is started.
    fn is_unused(&self, _proc: ProcId) -> bool {
        false
    }

    /// Called when a connection to a process has started. The process's number is not reused before [`Names::disconnected`].
    fn connected(&self, _proc: ProcId) {}

    /// Called when a connection to a process has ended or failed. A process without further references is removed.
    fn disconnected(&self, _proc: ProcId) {}

    /// Removes a process of another job that was admitted but whose connection failed.
    fn forget_if_idle(&self, _proc: ProcId) {}
}

/// The names within a job: the job ranks, which are the same in every process.
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
