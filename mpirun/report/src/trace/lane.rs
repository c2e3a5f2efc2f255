//! The tapes of all ranks, as they were collected.

use mpi_base::node::Played;

/// One rank's tape.
#[derive(Clone, Debug, Default)]
pub struct Lane {
    pub job: usize,
    pub rank: u32,
    pub host: String,
    pub tape: Played,
}

/// What all ranks did.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    pub lanes: Vec<Lane>,
    /// Other hosts, and by how many nanoseconds their clocks may be wrong; `None`: they were not compared with ours.
    pub clocks: Vec<(String, Option<u64>)>,
}
