//! Death notices of the launcher, for jobs that survive deaths.
//!
//! With the parameter `mpi_ft_enable`, our mpirun keeps a job when one of its processes dies.
//! It announces this in the environment of its ranks ([`SERVED`]).
//! Its PMI server notifies every process of its jobs of each death, once; see
//! [`Rte::deaths`](super::Rte::deaths).

/// The variable that is `1` in ranks whose launcher keeps the job when one of them dies, and notifies the others.
pub const SERVED: &str = "PORTCULLIS_FT";

/// A process that has died.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Death {
    /// The name of the process's job, as in its [`Identity`](super::Identity).
    pub job: String,
    /// The rank of the process in that job.
    pub rank: u32,
    /// True if the process has not died: it has finalized MPI and continues without it.
    pub left: bool,
}
