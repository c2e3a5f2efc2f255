//! Parser of the output of `mpi-bench --vs --json`: one line per row, with the median of each library.

use serde::Deserialize;

/// One row of a comparison.
#[derive(Clone, Debug, Deserialize)]
pub struct Compared {
    /// The name of the benchmark; for `init`, the name of the measured phase of start-up.
    pub benchmark: String,
    /// The message size in bytes, or another quantity that the benchmark varies.
    pub size: u64,
    /// The unit of all values of the row.
    pub unit: String,
    /// The median of Portcullis, in `unit`.
    pub ours: f64,
    /// The results of the compared libraries that have one.
    pub peers: Vec<PeerFigure>,
}

/// The result of a compared library in a row, with its best setting.
#[derive(Clone, Debug, Deserialize)]
pub struct PeerFigure {
    /// The compared library's name.
    pub library: String,
    /// The name in `mpi-bench` of the setting with this result.
    pub setting: String,
    /// The median of the compared library, in `unit`.
    pub median: f64,
    /// The ratio of the medians; above 1, Portcullis is better.
    pub ours_is_better_by: f64,
}

/// Parses the rows from the standard output of `mpi-bench`.
pub fn rows(stdout: &str) -> Vec<Compared> {
    let lines = stdout.lines();
    lines
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}
