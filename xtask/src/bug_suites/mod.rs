//! `cargo xtask bug-suites`: runs suites of incorrect MPI programs and counts the reported mistakes.
//!
//! * The MPI Bugs Initiative (M. Laurent, E. Saillard, M. Quinson, "The MPI Bugs Initiative:
//!   a Framework for MPI Verification Tools Evaluation", Correctness 2021):
//!   about 1,900 generated programs.
//! * MPI-CorrBench (J.-P. Lehr, T. Jammer, C. Bischof, "MPI-CorrBench: Towards an MPI Correctness
//!   Benchmark Suite", HPDC 2021): about 400 manually written programs.
//!
//! Each program runs twice: with default parameters, and with the checks that parameters enable (`CHECKS`).
//! The programs are not modified, and this command fails if a correct program is reported.
//! Sources are fetched and programs are built below the target folder; `--mbi` and `--corrbench` name existing folders instead.
//! A suite that cannot be fetched is omitted.

mod corpus;
mod ranks;
mod tally;
mod verdict;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use clap::Args;

use crate::install::InstallError;
use crate::process::{self, ProcessError, Running};
use crate::test_installation;
use crate::ui::{self, Steps};
use crate::workspace;
use corpus::{Case, Corpus};
use tally::Tally;
use verdict::{Seen, Verdict};

/// The parameters of the second run: they enable checks.
const CHECKS: &[(&str, &str)] = &[
    ("coll_base_check", "true"),
    ("osc_base_check", "true"),
    ("pml_ob1_check_buffering", "true"),
    ("pml_ob1_check_types", "true"),
    ("mpi_report_leaks", "1"),
];

/// The programs to run, and their limits.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// A folder with the MPI Bugs Initiative; otherwise it is fetched from GitHub
    #[arg(long, value_name = "DIR")]
    mbi: Option<PathBuf>,
    /// A folder with MPI-CorrBench; otherwise it is fetched from GitHub
    #[arg(long, value_name = "DIR")]
    corrbench: Option<PathBuf>,
    /// Programs that run at the same time
    #[arg(long, default_value = "4", value_parser = clap::value_parser!(u32).range(1..))]
    at_once: u32,
    /// Seconds after which mpirun ends a program
    #[arg(long, value_name = "SECONDS", default_value = "90", value_parser = clap::value_parser!(u64).range(1..))]
    limit: u64,
    /// Only every n-th program
    #[arg(long, value_name = "N", default_value = "1")]
    every: std::num::NonZeroUsize,
    /// Only programs whose path contains this
    #[arg(value_name = "PART")]
    part: Option<String>,
}

/// The reason why the command fails.
#[derive(Debug)]
pub enum BugSuitesError {
    /// Portcullis could not be installed.
    Install(InstallError),
    /// git, a generator of programs, or mpirun could not be run.
    Process(ProcessError),
    /// A file or folder could not be read or written.
    File {
        /// The file or folder.
        path: PathBuf,
        /// The system error.
        reason: std::io::Error,
    },
    /// The library reported mistakes in correct programs.
    FalseAlarms(Vec<String>),
}

impl fmt::Display for BugSuitesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Install(error) => error.fmt(f),
            Self::Process(error) => error.fmt(f),
            Self::File { path, reason } => write!(f, "{}: {reason}", path.display()),
            Self::FalseAlarms(programs) => write!(
                f,
                "{} correct programs were reported as wrong: {}",
                programs.len(),
                programs.join(", ")
            ),
        }
    }
}

impl std::error::Error for BugSuitesError {}

fn file(path: &Path) -> impl FnOnce(std::io::Error) -> BugSuitesError {
    let path = path.to_owned();
    |reason| BugSuitesError::File { path, reason }
}

fn folder() -> PathBuf {
    workspace::target().join("bug-suites")
}

/// Returns the folder of a suite: the user's, or a clone of the repository; prints a message and returns `None` if it cannot be cloned.
fn source(named: Option<&PathBuf>, repository: &str) -> Result<Option<PathBuf>, BugSuitesError> {
    if let Some(folder) = named {
        return Ok(Some(folder.clone()));
    }
    let name = repository.rsplit('/').next().unwrap_or(repository);
    let into = folder().join(name);
    if !into.is_dir() {
        let url = format!("https://github.com/{repository}");
        let mut clone = Command::new("git");
        clone.args(["clone", "--depth", "1", &url]).arg(&into);
        match process::output(&mut clone, Duration::from_secs(600)) {
            Ok(_) => {}
            Err(error @ ProcessError::Failed { .. }) => {
                ui::say(&format!("{repository} is left out: {error}"));
                return Ok(None);
            }
            Err(error) => return Err(BugSuitesError::Process(error)),
        }
    }
    Ok(Some(into))
}

/// Runs the suites and prints the table.
pub fn run(options: &Options) -> Result<(), BugSuitesError> {
    let mut steps = Steps::new(4);
    steps.step("installing", || {
        test_installation::ensure().map_err(BugSuitesError::Install)
    })?;
    fs::create_dir_all(folder()).map_err(file(&folder()))?;
    let corpora = steps.step("fetching and generating the programs", || {
        let mbi = source(options.mbi.as_ref(), "mquinson/MBI")?;
        let corrbench = source(options.corrbench.as_ref(), "tudasc/MPI-CorrBench")?;
        Ok::<_, BugSuitesError>([
            mbi.as_deref().map(corpus::mbi).transpose()?,
            corrbench.as_deref().map(corpus::corrbench).transpose()?,
        ])
    })?;
    let mut alarms = Vec::new();
    let mut report = String::new();
    for corpus in corpora.iter().flatten() {
        let tally = steps.step(corpus.name, || measure(options, corpus))?;
        report.push_str(&tally.to_string());
        alarms.extend(tally.false_alarms());
        let list = folder().join(format!("{}.txt", corpus.name));
        fs::write(&list, tally.list()).map_err(file(&list))?;
    }
    ui::say(&report);
    ui::say(&format!(
        "what each program did is in {}",
        folder().display()
    ));
    match alarms.is_empty() {
        true => Ok(()),
        false => Err(BugSuitesError::FalseAlarms(alarms)),
    }
}

fn measure(options: &Options, corpus: &Corpus) -> Result<Tally, BugSuitesError> {
    let is_chosen = |case: &&Case| {
        let part = options.part.as_deref().unwrap_or("");
        case.source.to_string_lossy().contains(part)
    };
    let chosen = corpus.cases.iter().filter(is_chosen);
    let cases: Vec<&Case> = chosen.step_by(options.every.get()).collect();
    let programs = folder().join("programs").join(corpus.name);
    fs::create_dir_all(&programs).map_err(file(&programs))?;
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Ok(Tally::new(corpus.name)));
    let work = || {
        while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            let seen = examine(options, corpus, case, &programs);
            let Ok(mut results) = results.lock() else {
                return;
            };
            match (seen, results.as_mut()) {
                (Ok(seen), Ok(tally)) => tally.add(case, seen),
                (Ok(_), Err(_)) => return,
                (Err(error), _) => *results = Err(error),
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..options.at_once {
            scope.spawn(work);
        }
    });
    results
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Compiles a program and runs it with and without checks; `None` if it does not compile.
fn examine(
    options: &Options,
    corpus: &Corpus,
    case: &Case,
    programs: &Path,
) -> Result<Option<[Seen; 2]>, BugSuitesError> {
    let bin = test_installation::installation().join("bin");
    let program = programs.join(&case.name);
    if !program.is_file() {
        let mut compile = Command::new(bin.join("mpicc"));
        compile.args(["-w", "-g", "-std=gnu99", "-o"]).arg(&program);
        compile.arg(&case.source);
        for folder in &corpus.includes {
            compile.arg("-I").arg(folder);
        }
        compile.args(&corpus.shared).arg("-lm");
        match process::output(&mut compile, Duration::from_secs(60)) {
            Ok(_) => {}
            Err(ProcessError::Failed { .. }) => return Ok(None),
            Err(error) => return Err(BugSuitesError::Process(error)),
        }
    }
    let run = |checks: &[(&str, &str)]| {
        let mut command = Command::new(bin.join("mpirun"));
        command
            .args(["-n", &case.ranks.to_string(), "--end-dead", "yes"])
            .args(["--timeout", &format!("{}s", options.limit)]);
        for (name, value) in checks {
            command.args(["--mca", name, value]);
        }
        command.arg(&program).args(&case.arguments);
        command.current_dir(programs);
        let outcome = Running::start(&mut command)
            .and_then(|running| running.wait(Duration::from_secs(options.limit + 30)));
        match outcome {
            Ok(outcome) => Ok(verdict::of(&outcome)),
            Err(ProcessError::TimedOut { .. }) => Ok(Seen::of(Verdict::TimeLimit)),
            Err(error) => Err(BugSuitesError::Process(error)),
        }
    };
    Ok(Some([run(&[])?, run(CHECKS)?]))
}
