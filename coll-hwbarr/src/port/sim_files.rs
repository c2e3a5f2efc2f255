//! What the simulator leaves when the last living node has closed: a waveform and a report.

use super::Way;
use crate::choice::SimFiles;
use mpi_core::plugin::guest::Comm;
use serde::Serialize;
use sim::event::Record;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

/// What `coll_hwbarr_sim_report` holds.
#[derive(Serialize)]
pub struct Report {
    nodes: usize,
    /// How many boards there are, those above others included.
    boards: usize,
    /// What was behind the wires: the model or the RTL.
    machine: &'static str,
    /// Clock edges that the RTL has evaluated.
    rtl_edges: u64,
    /// Barriers that it released since the self-test; equal to the barriers, or something is wrong.
    releases: u64,
    /// Ways back to rest that it counted, with `coll_hwbarr_reboot`; the last one may not have come.
    returns: u64,
    /// Barriers that the program passed over the wires.
    barriers: u64,
    barriers_by_node: Vec<u64>,
    /// Nodes that died; how many barriers they had passed is not known, and given as 0.
    dead_nodes: Vec<u32>,
    releases_of_self_test: u64,
}

/// How often a machine has released.
#[derive(Clone, Copy)]
pub struct Releases {
    /// Before the program's first barrier,
    pub before: u64,
    /// and since.
    pub changes: u64,
}

impl Report {
    /// Of the model on so many boards.
    pub fn of_model(boards: usize, way: Way, counted: Releases, barriers: Vec<u64>) -> Self {
        let Releases { before, changes } = counted;
        // The wires were at rest before the first change, so every other one is a way back.
        let (releases, returns) = match way {
            Way::There => (changes, 0),
            Way::ThereAndBack => (changes.div_ceil(2), changes / 2),
        };
        Self {
            nodes: barriers.len(),
            boards,
            machine: "model",
            rtl_edges: 0,
            releases,
            returns,
            barriers: barriers.iter().copied().max().unwrap_or(0),
            barriers_by_node: barriers,
            dead_nodes: Vec::new(),
            releases_of_self_test: before,
        }
    }

    /// The same without these nodes, which died.
    pub fn without(self, dead_nodes: Vec<u32>) -> Self {
        Self { dead_nodes, ..self }
    }

    /// The same of the RTL, which has evaluated so many edges.
    pub fn of_rtl(self, rtl_edges: u64) -> Self {
        Self {
            machine: "rtl",
            rtl_edges,
            ..self
        }
    }
}

/// Writes the files that are wanted; called by the last node to close.
pub fn write(
    comm: &Comm,
    files: &SimFiles,
    record: impl FnOnce() -> Record,
    report: impl FnOnce() -> Report,
) -> Result<(), String> {
    if let Some(waveform) = &files.vcd {
        let record = record();
        warn_of_missing(comm, record.dropped);
        waveform
            .write(&record)
            .map_err(|e| format!("the waveform was not written: {e}"))?;
    }
    if let Some(path) = &files.report {
        write_report(path, &report())
            .map_err(|e| format!("the report {} was not written: {e}", path.display()))?;
    }
    Ok(())
}

/// Tells the user that a waveform ends before the run does.
pub fn warn_of_missing(comm: &Comm, dropped: u64) {
    if dropped > 0 {
        comm.warn(&format!(
            "the waveform ends early: {dropped} changes had no room (coll_hwbarr_sim_record)"
        ));
    }
}

fn write_report(path: &Path, report: &Report) -> std::io::Result<()> {
    serde_json::to_writer_pretty(BufWriter::new(File::create(path)?), report)
        .map_err(std::io::Error::from)
}
