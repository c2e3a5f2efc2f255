//! `cargo xtask mpich-tests` and `mpich-fortran`: run MPICH's test suite on Portcullis.
//!
//! The tests, in C and in Fortran, are from Debian's source package of MPICH. Other authors wrote them
//! over thirty years from the text of the standard, so they cover cases that a library's own authors miss.
//! Each program of the chosen folders is run as its list defines (`list`); the program must print
//! "No Errors" and succeed. The programs of `known.txt` must not pass; module `known` describes the list.
//! With `--on` the same programs run on another library; its lists are `on_openmpi.txt`,
//! `on_mpich.txt` and, for other versions, the list that `--list` names.
//!
//! All files are fetched, built with Portcullis's `mpicc` and run below the target folder.

mod known;
mod list;
mod plugins;
mod source;

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use clap::Args;

use crate::debian_source::SourceError;
use crate::install::{self, InstallError};
use crate::library;
use crate::packages::{self, PackagesError};
use crate::process::{self, ProcessError};
use crate::test_installation;
use crate::ui::{self, Steps};
use known::{Known, Why};
use list::Run;
use plugins::Plugins;

/// One of the two test suites: C or Fortran.
#[derive(Debug)]
pub struct Suite {
    /// The folder of the test sources, below the target folder.
    folder: &'static str,
    /// The folders of the tests for the implemented chapters of the MPI standard.
    tests: &'static [&'static str],
    /// The folders of code that tests share; they are built before the tests.
    shared: &'static [&'static str],
    /// The option of `configure` that selects the language.
    languages: &'static str,
    /// The lists of known failures, one per MPI library.
    known: Lists,
}

/// Lists of known failures as (library named with `--on`, or `None` for Portcullis; text of the list).
type Lists = &'static [(Option<&'static str>, &'static str)];

/// The test suite in C.
pub const C: Suite = Suite {
    folder: "mpich",
    tests: FOLDERS,
    shared: &["dtpools", "util"],
    languages: "--disable-fortran",
    known: &[
        (None, include_str!("known.txt")),
        (Some("openmpi"), include_str!("on_openmpi.txt")),
        (Some("mpich"), include_str!("on_mpich.txt")),
    ],
};

/// The test suite in Fortran: `mpif.h`, `use mpi` and `use mpi_f08`.
pub const FORTRAN: Suite = Suite {
    folder: "mpich-fortran",
    tests: FORTRAN_FOLDERS,
    shared: &["util"],
    languages: "--enable-fortran=all",
    known: &[(None, include_str!("fortran.txt"))],
};

const FORTRAN_FOLDERS: &[&str] = &[
    "f77/attr",
    "f77/coll",
    "f77/comm",
    "f77/datatype",
    "f77/ext",
    "f77/info",
    "f77/init",
    "f77/io",
    "f77/profile",
    "f77/pt2pt",
    "f77/rma",
    "f77/spawn",
    "f77/topo",
    "f90/attr",
    "f90/coll",
    "f90/comm",
    "f90/datatype",
    "f90/ext",
    "f90/f90types",
    "f90/info",
    "f90/init",
    "f90/io",
    "f90/misc",
    "f90/profile",
    "f90/pt2pt",
    "f90/rma",
    "f90/spawn",
    "f90/timer",
    "f90/topo",
    "f08/attr",
    "f08/coll",
    "f08/comm",
    "f08/datatype",
    "f08/ext",
    "f08/info",
    "f08/init",
    "f08/io",
    "f08/misc",
    "f08/profile",
    "f08/pt2pt",
    "f08/rma",
    "f08/spawn",
    "f08/subarray",
    "f08/timer",
    "f08/topo",
];

/// The folders of the C tests for the implemented chapters of the MPI standard.
const FOLDERS: &[&str] = &[
    "attr",
    "coll",
    "comm",
    "datatype",
    "errhan",
    "errors/attr",
    "errors/coll",
    "errors/comm",
    "errors/datatype",
    "errors/group",
    "errors/io",
    "errors/pt2pt",
    "errors/rma",
    "errors/spawn",
    "errors/topo",
    "group",
    "info",
    "init",
    "io",
    "mpi_t",
    "part",
    "pt2pt",
    "rma",
    "spawn",
    "threads/coll",
    "threads/comm",
    "threads/init",
    "threads/mpi_t",
    "threads/part",
    "threads/pt2pt",
    "threads/rma",
    "threads/spawn",
    "topo",
];

/// The tests to run, and their limits.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Set a parameter of the library for all runs, as with mpirun
    #[arg(long, num_args = 2, value_names = ["NAME", "VALUE"], action = clap::ArgAction::Append)]
    mca: Vec<String>,
    /// Run the tests on another library, as mpirun's option does: openmpi, mpich (Debian's, each with a list of its own) or a file
    #[arg(long, value_name = "LIBRARY", value_parser = library::named)]
    on: Option<String>,
    /// The list of known failures; none by default with --on and a file
    #[arg(long, value_name = "FILE")]
    list: Option<PathBuf>,
    /// With the plugins of docs/plugins.md: the component in C for tests of collectives, the lossy transport in Rust for all others; by default the folders coll and pt2pt
    #[arg(long)]
    plugins: bool,
    /// Seconds that a program may take
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = clap::value_parser!(u64).range(1..))]
    limit: u64,
    /// Only programs whose names contain this
    #[arg(long, value_name = "PART")]
    only: Option<String>,
    /// Folders of tests [default: the folders of all implemented chapters]
    #[arg(value_name = "FOLDER")]
    folders: Vec<String>,
}

/// The reason why the tests were not run or had unexpected results.
#[derive(Debug)]
pub enum MpichTestsError {
    /// A compiler or a tool is missing and could not be installed.
    Packages(PackagesError),
    /// Portcullis could not be installed.
    Install(InstallError),
    /// The source package could not be fetched or unpacked.
    Source(SourceError),
    /// The tests could not be configured, or a program could not be started or awaited.
    Process(ProcessError),
    /// A file of the tests could not be read or written.
    File {
        /// The file or folder.
        path: PathBuf,
        /// The system error.
        reason: std::io::Error,
    },
    /// The list of known failures has a malformed line.
    Known {
        /// The line number, from 1.
        line: usize,
    },
    /// All tests were run, and some had unexpected results.
    Tests {
        /// A sentence for each unexpected result.
        sentences: Vec<String>,
    },
}

impl fmt::Display for MpichTestsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packages(error) => error.fmt(f),
            Self::Install(error) => error.fmt(f),
            Self::Source(error) => error.fmt(f),
            Self::Process(error) => error.fmt(f),
            Self::File { path, reason } => write!(f, "{}: {reason}", path.display()),
            Self::Known { line } => write!(
                f,
                "line {line} of the list should be a program, one of unbuilt, fails and left, and a reason"
            ),
            Self::Tests { sentences } => {
                write!(f, "MPICH's tests:\n  {}", sentences.join("\n  "))
            }
        }
    }
}

impl std::error::Error for MpichTestsError {}

fn file(path: &Path) -> impl FnOnce(std::io::Error) -> MpichTestsError {
    move |reason| MpichTestsError::File {
        path: path.to_owned(),
        reason,
    }
}

/// Runs `cargo xtask mpich-tests` or `mpich-fortran`.
pub fn run(options: &Options, suite: &Suite) -> Result<(), MpichTestsError> {
    let known = Known::parse(&list_of(options, suite)?)?;
    let mut steps = Steps::new(5);
    steps
        .step("looking for compilers and tools", packages::ensure)
        .map_err(MpichTestsError::Packages)?;
    let prefix = test_installation::installation();
    steps
        .step("installing Portcullis", || {
            install::install(&prefix, &test_installation::CONTENTS)
        })
        .map_err(MpichTestsError::Install)?;
    let root = steps.step("fetching the source package mpich", || {
        source::fetch(suite.folder)
    })?;
    let folders: Vec<&str> = match options.folders.is_empty() {
        true if options.plugins => plugins::FOLDERS.to_vec(),
        true => suite.tests.to_vec(),
        false => options.folders.iter().map(String::as_str).collect(),
    };
    steps.step("building its tests with our compiler wrappers", || {
        source::configure(&root, &prefix.join("bin"), suite.languages)?;
        source::build(
            &root,
            &prefix.join("bin"),
            &[suite.shared, &folders].concat(),
        )
    })?;
    let plugins = match options.plugins {
        true => Some(plugins::build(&prefix)?),
        false => None,
    };
    steps.step("running them", || {
        let place = Place {
            prefix: &prefix,
            root: &root,
            plugins: plugins.as_ref(),
        };
        check(options, &place, &folders, &known)
    })
}

/// Returns the text of the list of known failures to compare with.
fn list_of(options: &Options, suite: &Suite) -> Result<Cow<'static, str>, MpichTestsError> {
    if let Some(path) = &options.list {
        let text = std::fs::read_to_string(path).map_err(file(path))?;
        return Ok(text.into());
    }
    let on = options.on.as_deref();
    let list = suite.known.iter().find(|(library, _)| *library == on);
    // A library without a list: every failure is unexpected.
    Ok(Cow::Borrowed(list.map_or("", |(_, text)| text)))
}

enum Verdict {
    Good,
    Unbuilt,
    Bad(String),
}

/// The folders of the tests and of the library.
struct Place<'a> {
    prefix: &'a Path,
    root: &'a Path,
    plugins: Option<&'a Plugins>,
}

/// Runs every program of the folders as their lists define.
fn check(
    options: &Options,
    place: &Place<'_>,
    folders: &[&str],
    known: &Known,
) -> Result<(), MpichTestsError> {
    let mut sentences = Vec::new();
    let (mut good, mut as_known, mut left) = (0, 0, 0);
    for folder in folders {
        let path = place.root.join(folder).join("testlist");
        let text = std::fs::read_to_string(&path).map_err(file(&path))?;
        let runs = list::parse(&text);
        let wanted = |run: &&Run| {
            let only = options.only.as_ref();
            only.is_none_or(|part| run.program.contains(part.as_str()))
        };
        for runs in runs.chunk_by(|a, b| a.program == b.program) {
            let Some(first) = runs.iter().find(wanted) else {
                continue;
            };
            let program = format!("{folder}/{}", first.program);
            let why = known.of(&program);
            if why == Some(Why::Left) {
                left += runs.len();
                continue;
            }
            let mut failures = Vec::new();
            for run in runs {
                match once(options, place, folder, run)? {
                    Verdict::Good => good += 1,
                    Verdict::Bad(what) => failures.push((Why::Fails, format!("{run}: {what}"))),
                    Verdict::Unbuilt => failures.push((Why::Unbuilt, "is not built".into())),
                }
            }
            let surprises = failures.iter().filter(|(how, _)| Some(*how) != why);
            let told = sentences.len();
            sentences.extend(surprises.map(|(_, what)| format!("{program} {what}")));
            // Unexpected results are also printed immediately, because the tests of one folder can take minutes.
            for sentence in &sentences[told..] {
                ui::say(&format!("      {sentence}"));
            }
            as_known += failures.iter().filter(|(how, _)| Some(*how) == why).count();
            if failures.is_empty() && why.is_some() {
                sentences.push(format!("{program} passes; remove its line of the list"));
            }
        }
    }
    ui::say(&format!(
        "      {good} runs ended well, {as_known} as the list says, {left} were left out"
    ));
    match sentences.is_empty() {
        true => Ok(()),
        false => Err(MpichTestsError::Tests { sentences }),
    }
}

fn once(
    options: &Options,
    place: &Place<'_>,
    folder: &str,
    run: &Run,
) -> Result<Verdict, MpichTestsError> {
    let of_plugins = place.plugins.map(|plugins| plugins.parameters(folder));
    let parameters = [&*options.mca, &of_plugins.unwrap_or_default()].concat();
    let folder = place.root.join(folder);
    let program = folder.join(&run.program);
    if !program.is_file() {
        return Ok(Verdict::Unbuilt);
    }
    let mut command = Command::new(place.prefix.join("bin/mpirun"));
    command.args(["-n", &run.ranks.to_string()]);
    if let Some(library) = &options.on {
        command.arg("--on").arg(library);
    }
    for parameter in parameters.chunks(2) {
        command.arg("--mca").args(parameter);
    }
    command
        .arg(&program)
        .args(&run.arguments)
        .current_dir(&folder)
        .stdin(Stdio::null());
    let running = process::Running::start(&mut command).map_err(MpichTestsError::Process)?;
    let usual = Duration::from_secs(options.limit);
    let limit = place
        .plugins
        .map(|plugins| plugins.limit(&run.program, usual));
    Ok(match running.wait(limit.unwrap_or(usual)) {
        Ok(outcome) if run.must_fail => match outcome.status.success() {
            true => Verdict::Bad("ended well, and should not have".into()),
            false => Verdict::Good,
        },
        Ok(outcome) if outcome.status.success() && outcome.stdout.contains("No Errors") => {
            Verdict::Good
        }
        Ok(outcome) => {
            let said = outcome.stderr.lines().chain(outcome.stdout.lines());
            let mut lines = said.filter(|line| !line.trim().is_empty());
            Verdict::Bad(lines.next().unwrap_or("said nothing").trim().to_owned())
        }
        Err(ProcessError::TimedOut { after, .. }) => {
            Verdict::Bad(format!("was not done after {:.0} s", after.as_secs_f64()))
        }
        Err(error) => return Err(MpichTestsError::Process(error)),
    })
}
