//! `--vs`: comparison of two or more libraries on the same machine, within the same minutes.
//!
//! Figures differ between machines and between minutes.
//! So the libraries alternate in rounds, and medians over the rounds are compared.
//! Each compared library (a *peer*) runs with each of its settings; each row uses the best one.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;

use clap::ValueEnum as _;
use serde::Serialize;

use crate::benchmark::Benchmark;
use crate::cli::Options;
use crate::find;
use crate::launcher::{Installation, RunError, Setting};
use crate::load::Load;
use crate::measure::{beside, exits, first};
use crate::output::{self, OutputError};
use crate::table::{Meaning, label, meaning, number, width};

/// The reason why there is no comparison.
#[derive(Debug)]
pub enum VersusError {
    NoOwnLibrary(find::NotFound),
    Peer(RunError),
    /// All runs of the library under test failed.
    Ours(RunError),
    Output(OutputError),
}

impl fmt::Display for VersusError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoOwnLibrary(error) => error.fmt(f),
            Self::Peer(error) => error.fmt(f),
            Self::Output(error) => error.fmt(f),
            Self::Ours(error) => write!(f, "the library under test gave no figures: {error}"),
        }
    }
}

impl std::error::Error for VersusError {}

/// One library with one setting, and for each size its figures of all rounds.
struct Contestant {
    installation: Installation,
    setting: &'static Setting,
    figures: BTreeMap<usize, Vec<f64>>,
    /// The figures that the same ranks measured without MPI, for `barrier` and `io --plain`.
    bare: BTreeMap<usize, Vec<f64>>,
    /// For `init`: milliseconds from the command until all ranks have returned from `MPI_Init`.
    /// `commands` contains the times of the whole commands.
    starts: Vec<f64>,
    commands: Vec<f64>,
    failed: Option<RunError>,
}

/// The best setting of a compared library for one row, with its median.
#[derive(Debug, Clone, Serialize, PartialEq)]
struct Best {
    library: &'static str,
    setting: &'static str,
    median: f64,
    /// The factor by which the library under test is better; less than 1 if the peer is better.
    ours_is_better_by: f64,
}

/// One row of the comparison.
#[derive(Debug, Serialize)]
struct Comparison {
    benchmark: String,
    ranks: u32,
    size: usize,
    /// The name of the operation, for benchmarks with named rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    operation: Option<&'static str>,
    unit: &'static str,
    ours: f64,
    /// The figure that the same ranks measured without MPI, for `barrier` and `io --plain`.
    #[serde(skip_serializing_if = "Option::is_none")]
    bare: Option<f64>,
    peers: Vec<Best>,
}

/// Measures all libraries and prints the comparison.
pub fn run(options: &Options) -> Result<(), VersusError> {
    let mut contestants = contestants(options)?;
    let arguments = benchmark_arguments(options);
    let load = Load::start(options.loops());
    for round in 1..=options.rounds {
        for contestant in contestants.iter_mut().filter(|c| c.failed.is_none()) {
            progress(&format!(
                "round {round} of {}: {} ({})",
                options.rounds,
                contestant.installation.family.name(),
                contestant.setting.name
            ));
            contestant.take_turn(options, &arguments);
        }
    }
    drop(load);
    progress("");
    let (ours, peers) = contestants.split_at_mut(1);
    report_failures(peers);
    let Some(ours) = ours.first_mut() else {
        return Ok(());
    };
    if let Some(error) = ours.failed.take() {
        return Err(VersusError::Ours(error));
    }
    let rows = compare(options, ours, peers);
    let text = match options.json {
        // The conversion of strings and numbers to JSON cannot fail.
        true => rows
            .iter()
            .map(|row| serde_json::to_string(row).unwrap_or_default() + "\n")
            .collect(),
        false => table(options, &rows),
    };
    output::say(&text).map_err(VersusError::Output)
}

/// Returns the folder of the library under test.
pub fn own_library(options: &Options) -> Result<PathBuf, find::NotFound> {
    let own = find::library(options.lib.as_deref())?;
    Ok(own.parent().map_or_else(PathBuf::new, PathBuf::from))
}

/// Returns the library under test, followed by every compared library with every setting.
fn contestants(options: &Options) -> Result<Vec<Contestant>, VersusError> {
    let own = own_library(options).map_err(VersusError::NoOwnLibrary)?;
    let mut all = Vec::new();
    for folder in std::iter::once(&own).chain(&options.vs) {
        let installation = Installation::at(folder).map_err(VersusError::Peer)?;
        for setting in installation.settings(options.settings, options.benchmark, options.ranks()) {
            all.push(Contestant {
                installation: installation.clone(),
                setting,
                figures: BTreeMap::new(),
                bare: BTreeMap::new(),
                starts: Vec::new(),
                commands: Vec::new(),
                failed: None,
            });
            // The library under test runs only with the default setting, as users run it.
            if all.len() == 1 {
                break;
            }
        }
    }
    Ok(all)
}

impl Contestant {
    fn take_turn(&mut self, options: &Options, arguments: &[String]) {
        let Options {
            timeout, our_arg, ..
        } = options;
        let ranks = options.ranks();
        if options.benchmark == Benchmark::Launch {
            let size = ranks as usize;
            let nothing = self
                .installation
                .run_nothing(self.setting, ranks, our_arg, *timeout);
            match nothing {
                Ok(took) => {
                    let took = took.as_secs_f64() * 1e3;
                    self.figures.entry(size).or_default().push(took);
                }
                Err(error) => self.failed = Some(error),
            }
            return;
        }
        match self
            .installation
            .run(self.setting, ranks, our_arg, arguments, *timeout)
        {
            Ok((report, took)) => {
                for row in report.rows {
                    self.bare.entry(row.size).or_default().extend(row.bare);
                    self.figures.entry(row.size).or_default().push(row.avg);
                }
                self.starts.extend(report.started);
                self.commands.push(took.as_secs_f64() * 1e3);
            }
            Err(error) => self.failed = Some(error),
        }
    }
}

/// Returns the command-line arguments of the ranks, which are the same for all libraries.
pub fn benchmark_arguments(options: &Options) -> Vec<String> {
    let mut arguments = vec![options.benchmark.name()];
    let mut option = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            arguments.extend([name.to_owned(), value]);
        }
    };
    option("--sizes", options.sizes.as_ref().map(ToString::to_string));
    option("--iterations", options.iterations.map(|n| n.to_string()));
    option("--warmup", options.warmup.map(|n| n.to_string()));
    option(
        "--max-seconds",
        Some(options.max_seconds.as_secs_f64().to_string()),
    );
    option("--settle", Some(options.settle.as_secs_f64().to_string()));
    let buffers = options.buffers.to_possible_value();
    let (window, sync) = (
        options.window.to_possible_value(),
        options.sync.to_possible_value(),
    );
    option(
        "--buffers",
        buffers.map(|value| value.get_name().to_owned()),
    );
    option("--window", window.map(|value| value.get_name().to_owned()));
    option("--sync", sync.map(|value| value.get_name().to_owned()));
    arguments.extend(options.files.arguments());
    arguments
}

/// Compares medians row by row, with each peer's best setting.
fn compare(options: &Options, ours: &Contestant, peers: &[Contestant]) -> Vec<Comparison> {
    let Meaning {
        unit,
        larger_is_better,
        ..
    } = meaning(options.benchmark);
    let without_mpi = &ours.bare;
    let row =
        |size: usize, ours: f64, unit, figures: &dyn Fn(&Contestant) -> Option<f64>| Comparison {
            benchmark: options.benchmark.name(),
            ranks: options.ranks(),
            size,
            operation: match options.benchmark {
                Benchmark::First => first::ROWS.get(size).copied(),
                Benchmark::Beside => beside::ROWS.get(size).copied(),
                Benchmark::ExitSkew => exits::ROWS.get(size).copied(),
                _ => None,
            },
            unit,
            ours,
            bare: without_mpi.get(&size).and_then(|values| median(values)),
            peers: best_of_each(peers, ours, larger_is_better, figures),
        };
    let mut rows: Vec<Comparison> = ours
        .figures
        .iter()
        .filter_map(|(&size, values)| {
            let figure = |c: &Contestant| c.figures.get(&size).and_then(|v| median(v));
            Some(row(size, median(values)?, unit, &figure))
        })
        .collect();
    if options.benchmark == Benchmark::Init {
        // The rows `start` and `launch` include the launcher, since users wait for it as well.
        type Times = fn(&Contestant) -> &[f64];
        let times: [(&str, Times); 2] = [("start", |c| &c.starts), ("launch", |c| &c.commands)];
        for (name, times) in times {
            if let Some(time) = median(times(ours)) {
                let figure = |c: &Contestant| median(times(c));
                let mut whole = row(options.ranks() as usize, time, unit, &figure);
                whole.benchmark = name.into();
                rows.push(whole);
            }
        }
    }
    rows
}

/// Returns the figure of each peer's best setting, in the order of the command line.
fn best_of_each(
    peers: &[Contestant],
    ours: f64,
    larger_is_better: bool,
    figure: &dyn Fn(&Contestant) -> Option<f64>,
) -> Vec<Best> {
    let mut best: Vec<Best> = Vec::new();
    for peer in peers {
        let Some(median) = figure(peer) else { continue };
        let ours_is_better_by = if larger_is_better {
            ours / median
        } else {
            median / ours
        };
        let library = peer.installation.family.name();
        let candidate = Best {
            library,
            setting: peer.setting.name,
            median,
            ours_is_better_by,
        };
        match best.iter_mut().find(|b| b.library == library) {
            // The best setting of a peer gives the library under test the smallest factor.
            Some(known) if candidate.ours_is_better_by < known.ours_is_better_by => {
                *known = candidate
            }
            Some(_) => {}
            None => best.push(candidate),
        }
    }
    best
}

/// Returns the median: the middle value, or the mean of the two middle values.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[middle]),
        _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}

/// Returns the comparison as a table.
fn table(options: &Options, rows: &[Comparison]) -> String {
    let mut text = String::new();
    let Meaning { size, unit, .. } = meaning(options.benchmark);
    text += &format!(
        "# mpi-bench {}, {} ranks, medians of {} rounds in {unit}; ratio above 1: ours is better\n",
        options.benchmark.name(),
        options.ranks(),
        options.rounds
    );
    let peers: &[Best] = rows.first().map_or(&[], |row| &row.peers);
    let width = width(options.benchmark);
    text += &format!("{:<width$}{:>14}", format!("# {size}"), "ours");
    for peer in peers {
        text += &format!(
            "{:>14}{:>8}  {:<20}",
            peer.library, "ratio", "at its best with"
        );
    }
    text += "\n";
    for row in rows {
        let label = match (options.benchmark, row.benchmark.as_str()) {
            (Benchmark::Init, "start") => "past init".to_owned(),
            (Benchmark::Init, "launch") => "command".to_owned(),
            _ => label(options.benchmark, row.size),
        };
        text += &format!("{label:<width$}{:>14}", number(row.ours));
        for peer in &row.peers {
            text += &format!(
                "{:>14}{:>8.2}  {:<20}",
                number(peer.median),
                peer.ours_is_better_by,
                peer.setting
            );
        }
        text += "\n";
        if let (Some(plain), Benchmark::Io) = (row.bare, options.benchmark) {
            text += &format!(
                "# the same bytes by plain calls of the system, among our ranks: {}; ours reaches {:.2} of it\n",
                number(plain),
                row.ours / plain
            );
        } else if let Some(bare) = row.bare {
            text += &format!(
                "# one counter in shared memory and nothing else, among our ranks: {}; ours takes {:.2} times as long\n",
                number(bare),
                row.ours / bare
            );
        }
    }
    text
}

/// Prints a line on the terminal, which the next line overwrites; without a terminal does nothing.
pub fn progress(line: &str) {
    let mut err = std::io::stderr().lock();
    if err.is_terminal() {
        // If the terminal does not accept the line, only the line is lost.
        let _ = write!(err, "\r\x1b[K{}", printable::name(line));
        let _ = err.flush();
    }
}

fn report_failures(contestants: &[Contestant]) {
    for c in contestants {
        if let Some(error) = &c.failed {
            // The error may contain a program's output.
            printable::to_stderr(&format!(
                "mpi-bench: not measured: {} ({}): {error}\n",
                c.installation.family.name(),
                c.setting.name
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_the_middle_of_the_sorted_values() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
    }
}
