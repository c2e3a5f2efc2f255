//! A row of results: the figures of one size.

use serde::{Deserialize, Serialize};

/// One row of the table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The size in bytes, or another quantity for these benchmarks:
    ///
    /// * `first`, `beside`, `exit-skew`: the index in [`crate::measure::first::ROWS`],
    ///   [`crate::measure::beside::ROWS`] or [`crate::measure::exits::ROWS`];
    /// * `farm`: a task's duration in microseconds; `threads`: the number of threads;
    /// * barriers, `dup`, `init`, `memory` and `launcher-memory`: the number of ranks;
    /// * `posted` and `unexpected`: the length of the queue.
    pub size: usize,
    /// The average over all ranks, in the unit of [`crate::table::meaning`].
    pub avg: f64,
    /// The minimum over all ranks, if the ranks' figures can differ; `max` is the maximum.
    pub min: Option<f64>,
    pub max: Option<f64>,
    pub iterations: u64,
    /// The figure that the same ranks measured without MPI: the time of a barrier in shared memory
    /// for `barrier`, the bandwidth of system calls for `io --plain`.
    #[serde(default)]
    pub bare: Option<f64>,
}
