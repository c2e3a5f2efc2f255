//! Death notices from the launcher, for jobs that continue after the death of a process.
//!
//! With the parameter `mpi_ft_enable`, the mpirun of this library continues a job when one of the job's processes dies.
//! mpirun announces this in the environment of the ranks ([`SERVED`]).
//! Its PMI server notifies every process of its jobs of each death, one time; see
//! [`Rte::deaths`](super::Rte::deaths).

/// The environment variable that is `1` in ranks whose launcher continues the job when a rank dies, and notifies the other ranks.
pub const SERVED: &str = "PORTCULLIS_FT";

/// A process that has died, or has left its job by finalizing MPI.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Death {
    /// The name of the dead process's job, as in [`Identity`](super::Identity).
    pub job: String,
    /// The rank of the dead process in that job.
    pub rank: u32,
    /// True if the process has not died, but has finalized MPI and continues to run.
    pub left: bool,
}
