//! The user's choice of port as plain values: `settings` parses it; `port` and `channels` use it.

#[cfg(test)]
use crate::defect::Defect;
use barrier_board::served::Address;
use barrier_waveform::wave_files::WaveFiles;
use std::path::PathBuf;

/// The port that the user has chosen.
pub enum Choice {
    Sim(SimFiles),
    Rtl(SimFiles, RtlSource),
    /// A simulated board in another process, possibly on another host.
    ///
    /// The number of nodes of version 2, among which the ranks are divided; 0: one node per host.
    Served(Address, u32),
    /// A real port of this machine, identified by its name for the driver.
    Wired(String),
    #[cfg(test)]
    Broken(Defect, u32),
}

/// The source of the RTL that is simulated instead of the model.
#[derive(Clone, Default)]
pub struct RtlSource {
    /// The folder with the Verilog sources; `None` for the built-in design.
    pub folder: Option<PathBuf>,
    /// The cache folder for the translated RTL; `None` for the user's cache folder.
    pub cache: Option<PathBuf>,
}

/// The files that the simulator writes when the last node has closed.
#[derive(Clone, Default)]
pub struct SimFiles {
    pub vcd: Option<WaveFiles>,
    pub report: Option<PathBuf>,
    /// Number of events to record for the waveform; 0 without a waveform.
    pub record: usize,
    /// Number of nodes of a version 2 board; 0: one node per rank.
    pub nodes: u32,
}
