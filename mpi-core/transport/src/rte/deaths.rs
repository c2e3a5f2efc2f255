//! What a launcher tells of deaths, where the job survives them.
//!
//! Where the parameter `mpi_ft_enable` is on, our mpirun keeps a job when a process of it dies, and says so in the environment of its ranks ([`SERVED`]).
//! Its PMI server then tells every process of every job it has started of every death, once; see [`Rte::deaths`](super::Rte::deaths).

/// The variable that is `1` in the ranks of a launcher that keeps their job when one of them dies, and tells the others.
pub const SERVED: &str = "PORTCULLIS_FT";

/// A process that has died.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Death {
    /// The name of its job, as its [`Identity`](super::Identity) had it.
    pub job: String,
    /// Its rank there.
    pub rank: u32,
    /// Whether it has left MPI as it should, and lives on without it.
    pub left: bool,
}
