//! The event rings of all ranks, as they were collected.

use mpi_base::node::Played;

/// One rank's event ring.
#[derive(Clone, Debug, Default)]
pub struct Lane {
    pub job: usize,
    pub rank: u32,
    pub host: String,
    pub played: Played,
}

/// The trace of all ranks.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    pub lanes: Vec<Lane>,
    /// The other hosts with the maximum errors of their clocks in nanoseconds; `None`: the clock was not compared.
    pub clocks: Vec<(String, Option<u64>)>,
}
