//! `cargo xtask bench`: measures Portcullis, and with `--peers` also MPICH and Open MPI in alternation.
//!
//! The rows and their targets are the performance goals of the project.
//! The ratios of medians are compared, because absolute times differ between machines.
//! With `--report` the command writes a page with tables and plots instead ([`report`]).

mod compared;
pub mod report;
pub mod subjects;

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Args;

use self::compared::Compared;
use self::report::ReportError;
use self::subjects::{PEERS, Subjects};
use crate::install::{self, InstallError};
use crate::process::{self, ProcessError};
use crate::ui::{Steps, bold};
use crate::venv::VenvError;
use crate::workspace;

/// The measurements to make, and their number of rounds.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Also measure MPICH and Open MPI, each at the best of its settings
    #[arg(long, group = "compared")]
    peers: bool,
    /// Write a page with tables and pictures of the current state, also of MPICH and Open MPI, to this folder
    #[arg(long, value_name = "DIR", group = "compared", num_args = 0..=1, default_missing_value = REPORT)]
    report: Option<PathBuf>,
    /// A report with fewer rows, in a minute or two
    #[arg(long, requires = "report")]
    quick: bool,
    /// Number of rounds; each round runs every library once [default: 5; 1 with --quick]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: Option<u32>,
    /// Only rows whose benchmark has this name
    #[arg(long, value_name = "BENCHMARK", conflicts_with = "report")]
    only: Option<String>,
    #[command(flatten)]
    subjects: Subjects,
}

const REPORT: &str = "docs/measured";

/// The default number of rounds; each round runs every library once.
const ROUNDS: u32 = 5;

/// Reasons why a measurement fails.
#[derive(Debug)]
pub enum BenchError {
    /// Portcullis could not be built or installed, so there is nothing to measure.
    Install(InstallError),
    /// The Python environment of MPICH or Open MPI could not be created; `--peers` requires both.
    Venv(VenvError),
    /// `mpi-bench` could not be started, or failed.
    Run(ProcessError),
    /// The report could not be measured or written.
    Report(ReportError),
    /// No row has the benchmark that `--only` names.
    Nothing {
        /// The argument of `--only`.
        only: String,
    },
}

impl fmt::Display for BenchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Install(error) => error.fmt(f),
            Self::Venv(error) => error.fmt(f),
            Self::Run(error) => error.fmt(f),
            Self::Report(error) => error.fmt(f),
            Self::Nothing { only } => {
                let names: Vec<&str> = ROWS.iter().map(|row| row.benchmark).collect();
                write!(
                    f,
                    "no row is measured by {only:?}; there are {}",
                    names.join(", ")
                )
            }
        }
    }
}

impl std::error::Error for BenchError {}

/// One run of `mpi-bench`, which prints a row for each size.
struct Rows {
    benchmark: &'static str,
    ranks: u32,
    /// Each message size with its target time or rate; size 0 if the benchmark has no sizes.
    targets: &'static [(u64, f64)],
    /// True if MPICH and Open MPI run with their default settings instead of their best ones.
    defaults: bool,
}

const fn tuned(benchmark: &'static str, ranks: u32, targets: &'static [(u64, f64)]) -> Rows {
    Rows {
        benchmark,
        ranks,
        targets,
        defaults: false,
    }
}

const K: u64 = 1 << 10;
const M: u64 = 1 << 20;

/// The measured rows. Targets are in microseconds; for `bw` and `bibw` in MB/s; for `init` in ms.
const ROWS: &[Rows] = &[
    tuned(
        "latency",
        2,
        &[
            (8, 0.17),
            (64, 0.20),
            (K, 0.50),
            (4 * K, 1.05),
            (64 * K, 3.3),
            (M, 50.0),
        ],
    ),
    tuned(
        "bw",
        2,
        &[
            (8, 170.0),
            (K, 5_000.0),
            (8 * K, 12_000.0),
            (64 * K, 23_500.0),
            (M, 21_500.0),
            (4 * M, 21_600.0),
        ],
    ),
    tuned("bibw", 2, &[(64 * K, 36_000.0)]),
    tuned("barrier", 2, &[(0, 0.17)]),
    tuned(
        "allreduce",
        2,
        &[(8, 0.22), (K, 0.65), (64 * K, 9.0), (M, 160.0)],
    ),
    tuned("bcast", 2, &[(8, 0.12), (64 * K, 3.0), (M, 49.0)]),
    tuned("barrier", 4, &[(0, 1.6)]),
    tuned("barrier", 8, &[(0, 4.0)]),
    tuned("barrier", 16, &[(0, 13.0)]),
    tuned("barrier", 32, &[(0, 35.0)]),
    tuned("barrier", 60, &[(0, 80.0)]),
    Rows {
        benchmark: "barrier",
        ranks: 60,
        targets: &[(0, 80.0)],
        defaults: true,
    },
    tuned("allreduce", 60, &[(8, 100.0)]),
    tuned("bcast", 60, &[(8, 40.0)]),
    tuned("init", 2, &[(0, 20.0)]),
    tuned("init", 16, &[(0, 60.0)]),
    tuned("init", 60, &[(0, 250.0)]),
];

/// Runs the measurements and prints each row immediately.
pub fn run(options: &Options) -> Result<(), BenchError> {
    let Options {
        subjects,
        quick,
        rounds,
        ..
    } = options;
    if let Some(folder) = &options.report {
        let folder = match folder == Path::new(REPORT) {
            true => workspace::root().join(REPORT),
            false => folder.clone(),
        };
        // The measurement takes minutes, so the folder is checked before it.
        install::check_folder(&folder).map_err(BenchError::Install)?;
        return report::run(&folder, subjects, *quick, *rounds).map_err(BenchError::Report);
    }
    let rounds = rounds.unwrap_or(ROUNDS);
    let chosen: Vec<&Rows> = ROWS
        .iter()
        .filter(|rows| {
            options
                .only
                .as_deref()
                .is_none_or(|only| only == rows.benchmark)
        })
        .collect();
    if chosen.is_empty() {
        return Err(BenchError::Nothing {
            only: options.only.clone().unwrap_or_default(),
        });
    }
    let mut steps = Steps::new(if options.peers { 3 } else { 2 });
    let prefix = steps
        .step("building with all optimisation", || subjects.ours())
        .map_err(BenchError::Install)?;
    let peers = if options.peers {
        steps
            .step("fetching MPICH and Open MPI", || fetch_peers(subjects))
            .map_err(BenchError::Venv)?
    } else {
        Vec::new()
    };
    steps.step(format!("measuring, {rounds} rounds"), || {
        println!("{}", bold(&heading()));
        chosen
            .iter()
            .try_for_each(|rows| measure(&prefix, &peers, rounds, rows))
    })
}

fn fetch_peers(subjects: &Subjects) -> Result<Vec<PathBuf>, VenvError> {
    PEERS.iter().map(|peer| subjects.peer(peer)).collect()
}

/// Runs `mpi-bench` for one benchmark; its messages about failing settings go to the terminal.
fn measure(prefix: &Path, peers: &[PathBuf], rounds: u32, rows: &Rows) -> Result<(), BenchError> {
    let mut command = Command::new(prefix.join("bin/mpi-bench"));
    command.arg(rows.benchmark).args([
        "--json",
        "-n",
        &rows.ranks.to_string(),
        "--rounds",
        &rounds.to_string(),
    ]);
    let sizes: Vec<String> = rows
        .targets
        .iter()
        .filter(|(size, _)| *size > 0)
        .map(|(size, _)| size.to_string())
        .collect();
    if !sizes.is_empty() {
        command.args(["--sizes", &sizes.join(",")]);
    }
    if rows.defaults {
        command.args(["--settings", "default"]);
    }
    // If no other library is given, Portcullis is measured alone by the same command.
    for peer in peers {
        command.arg("--vs").arg(peer);
    }
    if peers.is_empty() {
        command.arg("--alone");
    }
    let program = process::spelled(&command);
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .map_err(|reason| {
            BenchError::Run(ProcessError::Start {
                program: program.clone(),
                reason,
            })
        })?;
    if !output.status.success() {
        let failed = ProcessError::Failed {
            program,
            status: output.status,
            stderr: String::new(),
        };
        return Err(BenchError::Run(failed));
    }
    for compared in compared::rows(&String::from_utf8_lossy(&output.stdout)) {
        println!("{}", spell(rows, &compared));
    }
    Ok(())
}

fn heading() -> String {
    format!(
        "{:<28}{:>11} {:<5}{:>10}   {:<38}{:<38}",
        "row (medians)",
        "ours",
        "",
        "target",
        "MPICH: median, ratio, setting",
        "Open MPI: median, ratio, setting"
    )
}

/// Formats a line of the table; a ratio above 1 means that Portcullis is better.
fn spell(rows: &Rows, compared: &Compared) -> String {
    let size = rows.targets.iter().find(|(size, _)| *size == compared.size);
    let label = match size {
        Some((size, _)) => format!(
            "{} {}, {} ranks",
            compared.benchmark,
            bytes(*size),
            rows.ranks
        ),
        None if rows.defaults => format!("{}, {} ranks, defaults", compared.benchmark, rows.ranks),
        None => format!("{}, {} ranks", compared.benchmark, rows.ranks),
    };
    // A target of `init` applies only to the row `launch`, the whole command, whose duration a user observes.
    let target = match (size, rows.targets) {
        (Some((_, target)), _) => Some(*target),
        (None, [(0, target)]) if !matches!(compared.benchmark.as_str(), "init" | "start") => {
            Some(*target)
        }
        _ => None,
    };
    let target = target.map_or_else(|| "-".to_owned(), figure);
    let mut line = format!(
        "{label:<28}{:>11} {:<5}{target:>10}   ",
        figure(compared.ours),
        compared.unit
    );
    for peer in ["MPICH", "Open MPI"]
        .iter()
        .filter_map(|name| compared.peers.iter().find(|p| p.library == *name))
    {
        let words = format!(
            "{:>10} {:>7.2}x {}",
            figure(peer.median),
            peer.ours_is_better_by,
            peer.setting
        );
        line += &format!("{words:<38}");
    }
    line.trim_end().to_owned()
}

fn figure(value: f64) -> String {
    if value < 10.0 {
        format!("{value:.3}")
    } else {
        format!("{value:.1}")
    }
}

fn bytes(size: u64) -> String {
    match size {
        s if s >= M => format!("{} MiB", s / M),
        s if s >= K => format!("{} KiB", s / K),
        s => format!("{s} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::compared::PeerFigure;
    use super::*;

    fn compared(benchmark: &str, size: u64) -> Compared {
        let peer = PeerFigure {
            library: "MPICH".into(),
            setting: "ucx shm".into(),
            median: 0.5,
            ours_is_better_by: 2.5,
        };
        Compared {
            benchmark: benchmark.into(),
            size,
            unit: "us".into(),
            ours: 0.2,
            peers: vec![peer],
        }
    }

    #[test]
    fn a_line_shows_our_target_and_the_peers_ratio() {
        let line = spell(&ROWS[0], &compared("latency", 64 * K));
        for part in ["64 KiB", "0.200", "3.300", "2.50x", "ucx shm"] {
            assert!(line.contains(part), "{part} in {line}");
        }
    }

    #[test]
    fn the_target_of_a_start_is_for_the_whole_command() {
        let init = ROWS.iter().find(|rows| rows.benchmark == "init").unwrap();
        assert!(spell(init, &compared("launch", 2)).contains("20.0"));
        assert!(!spell(init, &compared("init", 2)).contains("20.0"));
    }
}
