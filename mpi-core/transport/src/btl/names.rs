//! Process names in the handshake of a connection.

use mpi_base::proc::ProcId;

/// Maps between this process's numbers of its peers, which are local, and the names used in a connection's first message.
pub trait Names: Send + Sync {
    /// Returns the name of a process; `None` if it is unknown.
    fn name(&self, proc: ProcId) -> Option<u64>;

    /// Returns true if a process of this name may connect;
    /// checked before that process has authenticated itself.
    fn may_call(&self, name: u64) -> bool;

    /// The names of the two ends of a connection, for error texts.
    fn ends(&self, me: ProcId, peer: ProcId) -> String;

    /// Returns this process's number for an authenticated caller of this name; `None` rejects it.
    fn admit(&self, name: u64) -> Option<ProcId>;

    /// Returns true if no communicator and no pending call refers to a process of another job, so that no connection to it is started.
    fn is_unused(&self, _proc: ProcId) -> bool {
        false
    }

    /// A connection to a process has started; its number is not reused before [`Names::disconnected`].
    fn connected(&self, _proc: ProcId) {}

    /// A connection to a process has ended or failed; a process without further references is forgotten.
    fn disconnected(&self, _proc: ProcId) {}

    /// Forgets a process of another job that was admitted but whose connection failed.
    fn forget_if_idle(&self, _proc: ProcId) {}
}

/// The names within a job: job ranks, the same in every process.
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
