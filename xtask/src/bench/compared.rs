//! The output of `mpi-bench --vs --json`: one line per row, with the median of Portcullis and of each peer.

use serde::Deserialize;

/// One row of a comparison.
#[derive(Clone, Debug, Deserialize)]
pub struct Compared {
    /// The benchmark, or the part of a start that `init` measures.
    pub benchmark: String,
    /// Bytes, or the quantity that the benchmark varies instead.
    pub size: u64,
    /// The unit of all figures of the row.
    pub unit: String,
    /// The median of Portcullis.
    pub ours: f64,
    /// The peers that have a figure.
    pub peers: Vec<PeerFigure>,
}

/// The figure of a peer at its best setting for a row.
#[derive(Clone, Debug, Deserialize)]
pub struct PeerFigure {
    /// The peer's name.
    pub library: String,
    /// The name of the setting in `mpi-bench`.
    pub setting: String,
    /// The peer's median.
    pub median: f64,
    /// A ratio of medians; above 1, Portcullis is better.
    pub ours_is_better_by: f64,
}

/// Returns the rows in an output.
pub fn rows(stdout: &str) -> Vec<Compared> {
    let lines = stdout.lines();
    lines
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}
