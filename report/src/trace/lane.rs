//! The event rings of all ranks, as collected after a job.

use mpi_base::node::Played;

/// The event ring of one rank.
#[derive(Clone, Debug, Default)]
pub struct Lane {
    pub job: usize,
    pub rank: u32,
    pub host: String,
    pub played: Played,
}

/// The trace of a job: the event rings of all ranks.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    pub lanes: Vec<Lane>,
    /// The names of the other hosts, with the maximum errors of their clocks in nanoseconds;
    /// `None` if a clock was not compared.
    pub clocks: Vec<(String, Option<u64>)>,
}
