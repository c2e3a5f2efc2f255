//! Death notices of the launcher, where the job survives deaths.
//!
//! With the parameter `mpi_ft_enable`, our mpirun keeps a job when one of its processes dies, and announces this in the environment of its ranks ([`SERVED`]).
//! Its PMI server then notifies every process of every job it has started of every death, once; see [`Rte::deaths`](super::Rte::deaths).

/// The variable that is `1` in the ranks of a launcher that keeps their job when one of them dies, and that notifies the others.
pub const SERVED: &str = "PORTCULLIS_FT";

/// A process that has died.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Death {
    /// The name of its job, as its [`Identity`](super::Identity) had it.
    pub job: String,
    /// Its rank there.
    pub rank: u32,
    /// True if it has not died but left MPI in order, and continues without it.
    pub left: bool,
}
