//! `cargo xtask bench --report`: a page with tables and plots of the current performance.
//!
//! The page contains only results of this command, with the commands, the machine and the versions.
//! If MPICH or Open MPI is missing or fails, the page reports it;
//! only a Portcullis installation that cannot run aborts the report.
//! The table in `groups` defines the rows; parsing, formatting and drawing are pure functions.

mod groups;
mod machine;
mod markdown;
mod plot;
mod results;
#[cfg(test)]
mod tests;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use self::groups::{Effort, GROUPS};
use self::machine::Machine;
use self::markdown::Report;
use self::results::Measured;
use super::compared;
use super::subjects::{PEERS, Peer, Subjects};
use crate::install::InstallError;
use crate::process::{self, Outcome, ProcessError, Running};
use crate::ui::{Steps, say};
use crate::workspace;

/// The reason why a report fails.
#[derive(Debug)]
pub enum ReportError {
    /// Portcullis could not be built or installed.
    Install(InstallError),
    /// `mpi-bench` could not be started, or printed no result.
    Run(ProcessError),
    /// The report could not be written.
    Write {
        /// The path of the file or folder.
        path: PathBuf,
        /// The system error.
        reason: std::io::Error,
    },
    /// A plot could not be drawn.
    Draw {
        /// The name of the plot's file.
        file: String,
        /// The error of the drawing library.
        reason: String,
    },
}

impl fmt::Display for ReportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Install(error) => error.fmt(f),
            Self::Run(error) => error.fmt(f),
            Self::Write { path, reason } => write!(f, "cannot write {}: {reason}", path.display()),
            Self::Draw { file, reason } => write!(f, "cannot draw {file}: {reason}"),
        }
    }
}

impl std::error::Error for ReportError {}

/// Time limit of one library in one run; a library that exceeds the limit has no result.
const LIMIT: Duration = Duration::from_secs(60);
/// Maximum total number of settings of all libraries.
const MOST_SETTINGS: u32 = 10;

/// Runs the measurements and writes the report to `folder`.
pub fn run(
    folder: &Path,
    subjects: &Subjects,
    is_quick: bool,
    rounds: Option<u32>,
) -> Result<(), ReportError> {
    let effort = Effort::new(is_quick, rounds);
    let mut steps = Steps::new(3);
    let prefix = steps
        .step("our installation", || subjects.ours())
        .map_err(ReportError::Install)?;
    let bench = Bench::new(prefix)?;
    bench.check().map_err(ReportError::Run)?;
    let machine = Machine::this();
    let (mut present, mut absent) = (Vec::new(), Vec::new());
    steps.step("Open MPI and MPICH", || {
        for peer in PEERS {
            match bench.find(&peer, subjects)? {
                Ok(folder) => present.push((peer, folder)),
                Err(why) => absent.push(format!("{} is not compared: {why}.", peer.library)),
            }
        }
        absent.iter().for_each(|sentence| say(sentence));
        Ok(())
    })?;
    let mut versions = vec![("Portcullis".to_owned(), bench.own_version(subjects))];
    versions.extend(present.iter().map(|(peer, folder)| {
        let version = version(&folder.join("bin").join(peer.launcher));
        (peer.library.to_owned(), version)
    }));
    let about = groups::seconds(&effort, present.len(), machine.cores);
    let words = format!("measuring, about {:.0} minutes", (about / 60.0).ceil());
    let groups = steps.step(words, || bench.measure(&effort, &present))?;
    let report = Report {
        date: time::OffsetDateTime::now_utc().date().to_string(),
        machine,
        versions,
        peers: present.iter().map(|(peer, _)| peer.library).collect(),
        absent,
        effort,
        groups,
    };
    write(folder, &report)
}

fn write(folder: &Path, report: &Report) -> Result<(), ReportError> {
    let failed = |path: &Path, reason| ReportError::Write {
        path: path.to_owned(),
        reason,
    };
    fs::create_dir_all(folder).map_err(|reason| failed(folder, reason))?;
    let mut files = vec![("README.md".to_owned(), report.markdown())];
    for measured in &report.groups {
        for plot in plot::plots(measured, &report.peers) {
            let svg = plot.svg().map_err(|reason| ReportError::Draw {
                file: plot.file.clone(),
                reason,
            })?;
            files.push((plot.file, svg));
        }
    }
    for (name, text) in &files {
        let path = folder.join(name);
        fs::write(&path, text).map_err(|reason| failed(&path, reason))?;
    }
    say(&format!(
        "{} and {} pictures",
        folder.join("README.md").display(),
        files.len() - 1
    ));
    Ok(())
}

/// Arguments of the shortest job, which tests whether a library works.
const PROBE: &[&str] = &["init", "-n", "2", "--rounds", "1", "--settings", "default"];

/// An installation with `mpi-bench`, and a folder for the files of its runs.
struct Bench {
    prefix: PathBuf,
    scratch: PathBuf,
}

impl Bench {
    fn new(prefix: PathBuf) -> Result<Self, ReportError> {
        let scratch = workspace::target().join("bench-files");
        fs::create_dir_all(&scratch).map_err(|reason| ReportError::Write {
            path: scratch.clone(),
            reason,
        })?;
        Ok(Self { prefix, scratch })
    }

    /// Runs `mpi-bench` until it exits; any exit status is accepted.
    fn run(&self, arguments: &[String], limit: Duration) -> Result<Outcome, ProcessError> {
        let mut command = Command::new(self.prefix.join("bin/mpi-bench"));
        command.args(arguments).current_dir(&self.scratch);
        Running::start(command.args(["--json", "--timeout", &LIMIT.as_secs().to_string()]))?
            .wait(limit)
    }

    /// Runs a small Portcullis job; if the job fails, the report is aborted.
    fn check(&self) -> Result<(), ProcessError> {
        let arguments = PROBE.iter().chain(&["--alone"]).map(|&word| word.into());
        let outcome = self.run(&arguments.collect::<Vec<_>>(), 2 * LIMIT)?;
        if outcome.status.success() {
            return Ok(());
        }
        Err(ProcessError::Failed {
            program: self.prefix.join("bin/mpi-bench").display().to_string(),
            status: outcome.status,
            stderr: outcome.stderr,
        })
    }

    /// Returns the folder of a compared library if a test job with it succeeds;
    /// otherwise returns the reason.
    fn find(
        &self,
        peer: &Peer,
        subjects: &Subjects,
    ) -> Result<Result<PathBuf, String>, ReportError> {
        let folder = match subjects.peer(peer) {
            Ok(folder) => folder,
            Err(error) => {
                return Ok(Err(results::without_folders(&first_line(
                    &error.to_string(),
                ))));
            }
        };
        let mut arguments: Vec<String> = PROBE.iter().map(|&word| word.into()).collect();
        arguments.extend(["--vs".to_owned(), folder.display().to_string()]);
        let outcome = self.run(&arguments, 4 * LIMIT).map_err(ReportError::Run)?;
        let rows = compared::rows(&outcome.stdout);
        let is_there = rows
            .iter()
            .flat_map(|row| &row.peers)
            .any(|found| found.library == peer.library);
        if is_there {
            return Ok(Ok(folder));
        }
        let said = results::failures(&outcome.stderr).into_iter().next();
        Ok(Err(said.unwrap_or_else(|| {
            format!("what is installed there is not {}", peer.library)
        })))
    }

    fn measure(
        &self,
        effort: &Effort,
        peers: &[(Peer, PathBuf)],
    ) -> Result<Vec<Measured>, ReportError> {
        let words: Vec<String> = peers.iter().map(|(peer, _)| peer.word.into()).collect();
        let folders: Vec<String> = peers
            .iter()
            .map(|(_, folder)| folder.display().to_string())
            .collect();
        let limit = LIMIT * effort.rounds * MOST_SETTINGS;
        let mut all = Vec::new();
        for group in GROUPS {
            let mut measured = Measured::new(group);
            for run in group.runs.iter().filter(|run| run.is_in(effort)) {
                say(&format!("      {}, {} ranks", group.title, run.ranks));
                let alone = peers.is_empty().then(|| "--alone".to_owned());
                let complete = |peers: &[String]| {
                    let mut arguments = run.arguments(effort, peers);
                    arguments.extend(alone.clone());
                    arguments
                };
                let shown = complete(&words).join(" ");
                measured.commands.push(format!("mpi-bench {shown}"));
                match self.run(&complete(&folders), limit) {
                    Ok(outcome) => measured.add(run, &outcome.stdout, &outcome.stderr),
                    // `mpi-bench` has worked in `check`,
                    // so a timeout is reported and the other runs continue.
                    Err(error) => {
                        let said = format!("mpi-bench: {}", first_line(&error.to_string()));
                        measured.add(run, "", &said);
                    }
                }
            }
            all.push(measured);
        }
        Ok(all)
    }

    /// Returns the version of Portcullis, with the commit if it was built from this repository.
    fn own_version(&self, subjects: &Subjects) -> String {
        let version = version(&self.prefix.join("bin/mpirun"));
        if !subjects.is_built_here() {
            return version;
        }
        let mut git = Command::new("git");
        git.args(["describe", "--always", "--dirty"]);
        git.current_dir(workspace::root());
        match process::output(&mut git, LIMIT) {
            Ok(outcome) => format!("{version}, commit {}", outcome.stdout.trim()),
            // If the sources are not in a git repository, there is no commit.
            Err(_) => version,
        }
    }
}

fn version(launcher: &Path) -> String {
    let outcome = process::output(Command::new(launcher).arg("--version"), LIMIT);
    let said = outcome.ok().and_then(|outcome| version_in(&outcome.stdout));
    said.unwrap_or_else(|| "unknown version".into())
}

fn version_in(text: &str) -> Option<String> {
    let is_version = |word: &&str| {
        let parts: Vec<&str> = word.split('.').collect();
        let is_number = |part: &&str| part.starts_with(|c: char| c.is_ascii_digit());
        parts.len() > 1 && parts.iter().all(is_number)
    };
    text.split_whitespace().find(is_version).map(str::to_owned)
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}
