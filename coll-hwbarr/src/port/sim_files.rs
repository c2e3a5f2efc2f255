//! The simulator's output files, a waveform and a report, written by the last living node to close.

use super::LevelChanges;
use crate::choice::SimFiles;
use barrier_board::event::Record;
use mpi_core::plugin::guest::Comm;
use serde::Serialize;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// The report of a simulated board, written to the file that `coll_hwbarr_sim_report` names.
#[derive(Serialize)]
pub struct Report {
    nodes: usize,
    /// Number of boards, including those above the leaf boards.
    boards: usize,
    /// What computed the board's outputs: the model or the RTL.
    machine: &'static str,
    /// Number of clock edges that the RTL has evaluated.
    rtl_edges: u64,
    /// Number of releases since the self-test; a difference from `barriers` is a fault.
    releases: u64,
    /// Number of returns to the idle level, with `coll_hwbarr_reboot`; the last one may be missing.
    returns: u64,
    /// Number of barriers that the program executed on the wires.
    barriers: u64,
    barriers_by_node: Vec<u64>,
    /// The nodes that died; the number of their barriers is unknown and reported as 0.
    dead_nodes: Vec<u32>,
    releases_of_self_test: u64,
}

/// The numbers of level changes of a simulated board's release wire.
#[derive(Clone, Copy)]
pub struct Releases {
    /// Number of releases before the program's first barrier.
    pub before: u64,
    /// Number of level changes since the program's first barrier.
    pub changes: u64,
}

impl Report {
    /// Returns the report for `boards` boards that the model computed.
    pub fn of_model(
        boards: usize,
        level_changes: LevelChanges,
        counted: Releases,
        barriers: Vec<u64>,
    ) -> Self {
        let Releases { before, changes } = counted;
        // The wires were idle before the first change, so every second change is a return to idle.
        let (releases, returns) = match level_changes {
            LevelChanges::Once => (changes, 0),
            LevelChanges::Twice => (changes.div_ceil(2), changes / 2),
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

    /// Returns the report with these nodes as dead nodes.
    pub fn without(self, dead_nodes: Vec<u32>) -> Self {
        Self { dead_nodes, ..self }
    }

    /// Returns the report for the RTL, with the number of clock edges that it has evaluated.
    pub fn of_rtl(self, rtl_edges: u64) -> Self {
        Self {
            machine: "rtl",
            rtl_edges,
            ..self
        }
    }
}

/// Writes the configured files; only the last node to close calls this.
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

/// Warns the user that the waveform ends before the job does, because `dropped` events did not fit.
pub fn warn_of_missing(comm: &Comm, dropped: u64) {
    if dropped > 0 {
        comm.warn(&format!(
            "the waveform ends early: {dropped} changes had no room (coll_hwbarr_sim_record)"
        ));
    }
}

/// Writes a report as JSON, followed by a newline.
pub fn write_report(path: &Path, report: &impl Serialize) -> std::io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    serde_json::to_writer_pretty(&mut file, report)?;
    file.write_all(b"\n")?;
    file.flush()
}
