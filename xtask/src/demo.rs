//! `cargo xtask demo`: shows the hardware barrier with sixty processes.
//!
//! An unmodified C program calls MPI_Barrier on sixty processes, three times:
//! over the simulated hardware, over shared memory, and by dissemination over messages.
//! The FPGA model counts its releases, and
//! the demo fails if this count differs from the program's number of barriers.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use clap::Args;
use serde::Deserialize;

use crate::cargo::Profile;
use crate::install::{self, Contents, InstallError, Programs};
use crate::process::{self, ProcessError};
use crate::ui::{Steps, bold};
use crate::workspace;

/// Names and values of the hardware barrier's parameters that the demo sets.
pub mod parameters {
    /// The parameter that selects the component's port.
    pub const PORT: &str = "coll_hwbarr_port";
    /// The value of the port parameter for the simulator.
    pub const SIMULATOR: &str = "sim";
    /// The parameter with the path of the waveform file (VCD) of the wires.
    pub const WAVEFORM: &str = "coll_hwbarr_sim_vcd";
    /// The parameter with the path of the JSON report of the simulator's counters.
    pub const REPORT: &str = "coll_hwbarr_sim_report";
}

/// The fields of the simulator's report that this command uses.
#[derive(Debug, Deserialize)]
pub struct Report {
    /// Releases that the model counted, without those of the initial self-test.
    pub releases: u64,
    /// Clock edges that the RTL evaluated, if the RTL replaced the model.
    #[serde(default)]
    pub rtl_edges: u64,
}

impl Report {
    /// Reads the report that the simulator wrote at the end of a job.
    pub fn read(path: &Path) -> Result<Self, DemoError> {
        let text = fs::read_to_string(path).map_err(|reason| DemoError::File {
            path: path.to_owned(),
            reason,
        })?;
        serde_json::from_str(&text).map_err(|_| DemoError::Unreadable {
            what: "\"releases\":",
            text,
        })
    }
}

/// The options of the demo.
#[derive(Clone, Copy, Debug, Args)]
pub struct Options {
    /// Processes
    #[arg(short = 'n', long, default_value = "60", value_parser = clap::value_parser!(u32).range(1..=64))]
    ranks: u32,
    /// Barriers in the program's loop
    #[arg(short, long, default_value = "2000", value_parser = clap::value_parser!(u32).range(1..))]
    barriers: u32,
}

/// Reasons why the demo fails.
#[derive(Debug)]
pub enum DemoError {
    /// The library and the launcher could not be installed.
    Install(InstallError),
    /// The C compiler, `mpirun` or the simulator could not be started, failed or timed out.
    Run(ProcessError),
    /// A file or folder of the demo could not be written or read.
    File {
        /// The file or folder.
        path: PathBuf,
        /// The system error.
        reason: std::io::Error,
    },
    /// A number in the program's output or in the model's report could not be parsed.
    Unreadable {
        /// The words that should precede the missing number.
        what: &'static str,
        /// The complete output.
        text: String,
    },
    /// The program's number of barriers differs from the model's number of releases.
    Counts {
        /// The number of barriers that the program printed.
        program: u64,
        /// The number of releases that the FPGA model counted.
        model: u64,
    },
}

impl fmt::Display for DemoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Install(error) => error.fmt(f),
            Self::Run(error) => error.fmt(f),
            Self::File { path, reason } => write!(f, "cannot use {}: {reason}", path.display()),
            Self::Unreadable { what, text } => write!(f, "no line \"{what} NUMBER\" in:\n{text}"),
            Self::Counts { program, model } => write!(
                f,
                "THE COUNTS DIFFER: the program made {program} barriers, the FPGA model counted {model} releases"
            ),
        }
    }
}

impl std::error::Error for DemoError {}

impl From<ProcessError> for DemoError {
    fn from(error: ProcessError) -> Self {
        Self::Run(error)
    }
}

/// The files of a run: the wires' waveform and the model's counters.
struct Traces {
    waveform: PathBuf,
    report: PathBuf,
}

struct Shown {
    title: &'static str,
    median: f64,
    worst: f64,
    made: u64,
    counted: Option<u64>,
}

/// Builds, installs, compiles, runs the program three times, and prints a table.
pub fn run(options: &Options) -> Result<(), DemoError> {
    let prefix = workspace::target().join("demo");
    let mut steps = Steps::new(5);
    let contents = Contents {
        profile: Profile::Demo,
        bare: false,
        plugins: false,
        others: false,
        programs: Programs::CompileAndRun,
    };
    steps
        .step("building Portcullis (the first time takes a while)", || {
            install::install(&prefix, &contents)
        })
        .map_err(DemoError::Install)?;
    let program = steps.step(
        "compiling tests/programs/barrier_loop.c with our mpicc",
        || compile(&prefix),
    )?;
    let traces = Traces {
        waveform: prefix.join("barriers.vcd"),
        report: prefix.join("barriers.report"),
    };
    forget(&traces)?;

    let ways: [(&str, Vec<String>, bool); 3] = [
        (
            "hardware barrier, simulated",
            on_the_simulator(&traces),
            true,
        ),
        ("shared memory", without("hwbarr"), false),
        ("dissemination over messages", without("hwbarr,shm"), false),
    ];
    let mut shown = Vec::new();
    for (title, arguments, traced) in ways {
        let what = format!(
            "{} barriers on {} processes: {title}",
            options.barriers, options.ranks
        );
        let traces = traced.then_some(&traces);
        shown.push(steps.step(what, || {
            one_run(&prefix, &program, options, title, &arguments, traces)
        })?);
    }
    print!("{}", table(options.ranks, &shown));
    println!("\nThe wires: {}", traces.waveform.display());
    let save_file = traces.waveform.with_extension("gtkw");
    if save_file.exists() {
        println!("Look at them: gtkwave {}", save_file.display());
    }
    println!("{:.0} s in all.", steps.seconds());
    Ok(())
}

/// Returns the `--mca` arguments for the hardware barrier on the simulator.
pub fn simulator_arguments(waveform: &Path, report: &Path) -> Vec<String> {
    let pairs = [
        (parameters::PORT, parameters::SIMULATOR.to_owned()),
        (parameters::WAVEFORM, waveform.display().to_string()),
        (parameters::REPORT, report.display().to_string()),
    ];
    pairs
        .into_iter()
        .flat_map(|(name, value)| ["--mca".to_owned(), name.to_owned(), value])
        .collect()
}

fn on_the_simulator(traces: &Traces) -> Vec<String> {
    simulator_arguments(&traces.waveform, &traces.report)
}

/// Returns the `--mca` arguments that exclude collective components.
pub fn without(components: &str) -> Vec<String> {
    ["--mca", "coll", &format!("^{components}")]
        .map(str::to_owned)
        .into()
}

fn compile(prefix: &Path) -> Result<PathBuf, DemoError> {
    let program = prefix.join("barrier_loop");
    let mut command = Command::new(prefix.join("bin/mpicc"));
    command
        .args(["-O2", "-o"])
        .arg(&program)
        .arg(workspace::programs().join("barrier_loop.c"));
    process::output(&mut command, Duration::from_secs(60))?;
    Ok(program)
}

/// Deletes the files of an earlier run, so that they cannot be mistaken for results of this run.
fn forget(traces: &Traces) -> Result<(), DemoError> {
    for path in [&traces.waveform, &traces.report] {
        match fs::remove_file(path) {
            Err(reason) if reason.kind() != std::io::ErrorKind::NotFound => {
                return Err(DemoError::File {
                    path: path.clone(),
                    reason,
                });
            }
            _ => {}
        }
    }
    Ok(())
}

fn one_run(
    prefix: &Path,
    program: &Path,
    options: &Options,
    title: &'static str,
    arguments: &[String],
    traces: Option<&Traces>,
) -> Result<Shown, DemoError> {
    let mut command = Command::new(prefix.join("bin/mpirun"));
    command
        .args(["-n", &options.ranks.to_string()])
        .args(arguments);
    command.arg(program).arg(options.barriers.to_string());
    let outcome = process::output(&mut command, Duration::from_secs(120))?;
    let made = number(&outcome.stdout, "barriers")? as u64;
    let counted = match traces {
        Some(traces) => {
            let model = Report::read(&traces.report)?.releases;
            if model != made {
                return Err(DemoError::Counts {
                    program: made,
                    model,
                });
            }
            Some(model)
        }
        None => None,
    };
    Ok(Shown {
        title,
        median: number(&outcome.stdout, "median")?,
        worst: number(&outcome.stdout, "worst")?,
        made,
        counted,
    })
}

/// Returns the number after `word`, in the line that begins with `word`.
pub fn number(text: &str, word: &'static str) -> Result<f64, DemoError> {
    text.lines()
        .find_map(|line| {
            line.strip_prefix(word)?
                .split_whitespace()
                .next()?
                .parse()
                .ok()
        })
        .ok_or_else(|| DemoError::Unreadable {
            what: word,
            text: text.to_owned(),
        })
}

fn table(ranks: u32, shown: &[Shown]) -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut text = format!(
        "\n{}\n{:<30}{:>14}{:>14}{:>14}{:>16}\n{:<30}{:>14}{:>14}{:>14}{:>16}\n",
        bold(&format!("MPI_Barrier, {ranks} processes on {cores} cores")),
        "",
        "us, median",
        "us, worst",
        "barriers by",
        "counted by",
        "",
        "",
        "",
        "the program",
        "the FPGA model"
    );
    for Shown {
        title,
        median,
        worst,
        made,
        counted,
    } in shown
    {
        let counted = counted.map_or_else(|| "-".to_owned(), |n| n.to_string());
        text += &format!("{title:<30}{median:>14.1}{worst:>14.1}{made:>14}{counted:>16}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_from_the_programs_lines() {
        let text = "barriers 2002\nmedian 12.500 us\n";
        assert_eq!(number(text, "barriers").unwrap(), 2002.0);
        assert_eq!(number(text, "median").unwrap(), 12.5);
        assert!(
            number(text, "worst")
                .unwrap_err()
                .to_string()
                .contains("worst")
        );
    }

    #[test]
    fn different_counts_are_reported() {
        let text = DemoError::Counts {
            program: 3,
            model: 2,
        }
        .to_string();
        assert!(text.contains("DIFFER") && text.contains('3') && text.contains('2'));
    }
}
