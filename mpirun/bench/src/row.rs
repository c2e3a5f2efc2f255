//! A row of results: the figures of one size.

use serde::{Deserialize, Serialize};

/// One line of the table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Bytes; the operation's place in [`crate::measure::first::ROWS`] for `first`, in [`crate::measure::beside::ROWS`] for `beside`, in [`crate::measure::exits::ROWS`] for `exit-skew`; a task's microseconds for `farm`; ranks for the barriers, `dup`, `init` and the two memories, the queue's depth for `posted` and `unexpected`, threads for `threads`.
    pub size: usize,
    /// In the unit of [`crate::table::meaning`].
    pub avg: f64,
    /// The fastest and the slowest rank, if ranks can differ.
    pub min: Option<f64>,
    pub max: Option<f64>,
    pub iterations: u64,
    /// The figure without MPI among the same ranks: a barrier for `barrier`, plain system calls for `io --plain`.
    #[serde(default)]
    pub bare: Option<f64>,
}
