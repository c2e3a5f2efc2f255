//! What `mpi-bench --vs --json` prints: one line for each row, with our median and each peer's.

use serde::Deserialize;

/// One row of a comparison.
#[derive(Clone, Debug, Deserialize)]
pub struct Compared {
    /// The benchmark, or the part of a start that is measured with `init`.
    pub benchmark: String,
    /// Bytes, or what the benchmark counts instead of them.
    pub size: u64,
    /// Of all figures of the row.
    pub unit: String,
    /// Our median.
    pub ours: f64,
    /// Those that gave a figure.
    pub peers: Vec<PeerFigure>,
}

/// The best of a peer's settings for a row.
#[derive(Clone, Debug, Deserialize)]
pub struct PeerFigure {
    /// The peer's name.
    pub library: String,
    /// How `mpi-bench` calls the setting.
    pub setting: String,
    /// The peer's median.
    pub median: f64,
    /// A ratio of medians; above one, ours is better.
    pub ours_is_better_by: f64,
}

/// The rows among the lines of an output.
pub fn rows(stdout: &str) -> Vec<Compared> {
    let lines = stdout.lines();
    lines
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}
