//! `mpirun --io-report [FILE]`: statistics of the file I/O of all ranks.
//!
//! Each rank writes its counters to its event ring ([`mpi_core::io::report`]).
//! This module adds the counters of all ranks for each file.
//! A rank writes a file's counters when it closes the file and again in `MPI_Finalize`;
//! the last values count. A killed rank's counters include only the files that it had closed.

mod table;

use crate::trace::lane::Lane;
use mpi_base::node::{Event, EventKind};
use mpi_core::io::report::{COUNTERS, Counter, SIZES};
use mpi_report::file_names::names;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// The file I/O of all ranks.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct IoReport {
    /// The files, sorted by name.
    pub files: Vec<FileReport>,
    /// The upper bound of each histogram column in bytes; the last column has none.
    pub size_columns: Vec<Option<u64>>,
}

/// The I/O of all ranks on one file.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FileReport {
    pub name: String,
    /// The number of ranks that opened the file.
    pub ranks: usize,
    pub opens: u64,
    pub bytes_read: u64,
    pub bytes_written: u64,
    /// The number of MPI calls that read the file.
    pub reads: u64,
    /// The number of MPI calls that wrote the file.
    pub writes: u64,
    /// The number of collective calls among `reads` and `writes`.
    pub collective: u64,
    /// The number of collective calls that used aggregation.
    pub aggregated: u64,
    pub system_reads: u64,
    pub system_writes: u64,
    pub system_other: u64,
    /// Seconds in MPI calls that read or wrote, summed over all ranks.
    pub seconds_in_calls: f64,
    /// Seconds in system calls on the file, summed over all ranks.
    pub seconds_in_system: f64,
    /// Histogram of the MPI calls by size in bytes.
    pub call_sizes: Vec<u64>,
    /// Histogram of the read and write system calls by size in bytes.
    pub system_sizes: Vec<u64>,
    /// The rank that spent the most time in MPI calls.
    pub slowest: Option<Slowest>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Slowest {
    /// The index of the rank's job: 0 is the launched job, others are spawned.
    pub job: usize,
    pub rank: u32,
    pub host: String,
    pub seconds_in_calls: f64,
}

/// Returns the last counters of a rank for each file, by the file's id in the rank's events.
fn totals(events: &[Event]) -> BTreeMap<u64, [u64; COUNTERS]> {
    let mut all: BTreeMap<u64, [u64; COUNTERS]> = BTreeMap::new();
    for event in events.iter().filter(|e| e.kind == EventKind::FileTotals) {
        let counters = all.entry(event.number).or_insert([0; COUNTERS]);
        let first = usize::try_from(event.tag).unwrap_or(COUNTERS);
        for (at, value) in [event.comm, event.bytes, event.extra]
            .into_iter()
            .enumerate()
        {
            if let Some(counter) = counters.get_mut(first.saturating_add(at)) {
                *counter = value;
            }
        }
    }
    all
}

impl FileReport {
    fn take(&mut self, lane: &Lane, counters: &[u64; COUNTERS]) {
        let of = |counter: Counter| counters[counter as usize];
        let seconds = |counter| of(counter) as f64 / 1e9;
        self.ranks += 1;
        self.opens += of(Counter::Opens);
        self.bytes_read += of(Counter::BytesRead);
        self.bytes_written += of(Counter::BytesWritten);
        self.reads += of(Counter::Reads);
        self.writes += of(Counter::Writes);
        self.collective += of(Counter::Collective);
        self.aggregated += of(Counter::Aggregated);
        self.system_reads += of(Counter::SystemReads);
        self.system_writes += of(Counter::SystemWrites);
        self.system_other += of(Counter::SystemOther);
        self.seconds_in_calls += seconds(Counter::NanosInCalls);
        self.seconds_in_system += seconds(Counter::NanosInSystem);
        let columns = [
            (&mut self.call_sizes, Counter::CallSizes),
            (&mut self.system_sizes, Counter::SystemSizes),
        ];
        for (sum, first) in columns {
            sum.resize(SIZES.len(), 0);
            for (sum, value) in sum.iter_mut().zip(&counters[first as usize..]) {
                *sum += value;
            }
        }
        let mine = seconds(Counter::NanosInCalls);
        let slowest = self.slowest.as_ref().map_or(0.0, |s| s.seconds_in_calls);
        if mine > slowest {
            self.slowest = Some(Slowest {
                job: lane.job,
                rank: lane.rank,
                host: lane.host.clone(),
                seconds_in_calls: mine,
            });
        }
    }
}

impl IoReport {
    /// Builds the report from the ranks' event rings.
    pub fn of(lanes: &[Lane]) -> IoReport {
        let mut files: BTreeMap<String, FileReport> = BTreeMap::new();
        for lane in lanes {
            let names = names(&lane.played.events);
            for (number, counters) in totals(&lane.played.events) {
                let name = names.get(&number).cloned();
                let name = name.unwrap_or_else(|| format!("(file {number} of rank {})", lane.rank));
                let file = files.entry(name.clone()).or_default();
                file.name = name;
                file.take(lane, &counters);
            }
        }
        let column = |end: &u64| (*end < u64::MAX).then_some(*end);
        IoReport {
            files: files.into_values().collect(),
            size_columns: SIZES.iter().map(column).collect(),
        }
    }

    /// Writes the report as JSON if the file name ends in `.json`, else as a table.
    pub fn write(&self, file: &Path) -> io::Result<()> {
        let text = match file.extension().is_some_and(|end| end == "json") {
            true => {
                let text = serde_json::to_string_pretty(self).map_err(io::Error::other)?;
                text + "\n"
            }
            false => self.table(),
        };
        std::fs::write(file, text)
    }
}

#[cfg(test)]
mod tests;
