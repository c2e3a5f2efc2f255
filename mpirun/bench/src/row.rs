//! A row of results: what was measured of one size.

use serde::{Deserialize, Serialize};

/// One line of the table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Bytes; ranks for the barriers, `dup`, `init` and the two memories, the queue's depth for `posted` and `unexpected`, threads for `threads`.
    pub size: usize,
    /// In the unit that [`crate::table::meaning`] says.
    pub avg: f64,
    /// Fastest and slowest rank, where ranks can differ.
    pub min: Option<f64>,
    pub max: Option<f64>,
    pub iterations: u64,
    /// What the same takes without MPI among the same ranks: a barrier for `barrier`, plain calls of the system for `io --plain`.
    #[serde(default)]
    pub bare: Option<f64>,
}
