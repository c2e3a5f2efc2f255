//! What the user has chosen to carry the wires, as plain values: read by `settings`, carried out by `port` and `channels`.

#[cfg(test)]
use crate::defect::Defect;
use sim::served::Address;
use sim::wave_files::WaveFiles;
use std::path::PathBuf;

/// The port that the user has chosen.
pub enum Choice {
    Sim(SimFiles),
    Rtl(SimFiles, RtlSource),
    /// The simulator's board of another process, maybe on another host.
    ///
    /// With the number of nodes among which the ranks are divided in version 2; zero for one for each host.
    Served(Address, u32),
    /// A port of this machine, by its text.
    Wired(String),
    #[cfg(test)]
    Broken(Defect, u32),
}

/// Which RTL is run.
#[derive(Clone, Default)]
pub struct RtlSource {
    /// The Verilog; the product's own if absent.
    pub folder: Option<PathBuf>,
    /// Where its translation is kept; the user's cache if absent.
    pub cache: Option<PathBuf>,
}

/// What the simulator writes when the last node has closed.
#[derive(Clone, Default)]
pub struct SimFiles {
    pub vcd: Option<WaveFiles>,
    pub report: Option<PathBuf>,
    /// Events to record; zero without a waveform.
    pub record: usize,
    /// Nodes of a version 2 board; zero for one for each rank.
    pub nodes: u32,
}
