//! Runs mpi4py's test modules on a number of processes, one module or all modules in a job.
//!
//! A job counts as hung if no rank has extended its record within the time limit.
//! The hung job is stopped, and the test that hung gets the verdict;
//! another job runs the tests that follow it.
//! A module that hangs or dies `PATIENCE` times fails as a whole.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::Mpi4pyError;
use super::known::Results;
use super::record::{Report, Verdict, written};
use crate::process::{ProcessError, Running};

/// Paths and time limits for the runs.
pub struct Setting {
    /// The Portcullis installation.
    pub prefix: PathBuf,
    /// The library that Portcullis uses with `--on`.
    pub on: Option<String>,
    pub python: PathBuf,
    /// The folder `test` of the source package.
    pub tests: PathBuf,
    /// The path of `record.py`.
    pub recorder: PathBuf,
    /// True if each test uses only one kind of Python buffer.
    pub one_buffer: bool,
    /// The folder for records, logs and temporary files.
    pub scratch: PathBuf,
    /// Time limit within which at least one rank must begin or end a test.
    pub limit: Duration,
}

const PATIENCE: usize = 3;

/// The results of one module, or of all modules in one job.
pub struct Ended {
    pub results: Results,
    pub log: PathBuf,
    pub took: Duration,
}

impl Setting {
    /// Runs all `modules` in one job, so that each rank starts Python once.
    /// Returns `None` if the job hangs or dies; the caller then runs each module separately.
    pub fn run_together(
        &self,
        modules: &[String],
        ranks: u32,
        only: &[String],
        without: &[String],
    ) -> Result<Option<Ended>, Mpi4pyError> {
        let begin = Instant::now();
        let (path, mut log) = self.log("all", ranks)?;
        let (report, end) = self.job(&modules.join("|"), ranks, only, without, &mut log)?;
        if end.is_some() {
            return Ok(None);
        }
        let mut results = Results::default();
        for (test, verdict) in &report.ended {
            results.add(test, ranks, *verdict);
        }
        Ok(Some(Ended {
            results,
            log: path,
            took: begin.elapsed(),
        }))
    }

    fn log(&self, name: &str, ranks: u32) -> Result<(PathBuf, File), Mpi4pyError> {
        let path = self.scratch.join(format!("{name}-{ranks}.log"));
        let file = File::create(&path).map_err(Mpi4pyError::file(&path))?;
        Ok((path, file))
    }

    /// Runs `module` on `ranks` processes. `only` are parts of test names (empty: all tests);
    /// `without` are tests to exclude.
    pub fn run(
        &self,
        module: &str,
        ranks: u32,
        only: &[String],
        without: &[String],
    ) -> Result<Ended, Mpi4pyError> {
        let begin = Instant::now();
        let (path, mut log) = self.log(module, ranks)?;
        let mut done = without.to_vec();
        let mut results = Results::default();
        for patience in (0..PATIENCE).rev() {
            let (report, end) = self.job(module, ranks, only, &done, &mut log)?;
            for (test, verdict) in &report.ended {
                results.add(test, ranks, *verdict);
                done.push(test.clone());
            }
            let Some(verdict) = end else { break };
            match report.stuck {
                Some(stuck) if patience > 0 => {
                    results.add(&stuck, ranks, verdict);
                    done.push(stuck);
                }
                // If no test is identified, or too many jobs hung or died, the verdict belongs to the module.
                _ => {
                    results = Results::default();
                    results.add(module, ranks, verdict);
                    break;
                }
            }
        }
        Ok(Ended {
            results,
            log: path,
            took: begin.elapsed(),
        })
    }

    /// Runs the tests of `modules` (names separated by bars) that are not in `done`.
    /// If the job failed, returns the verdict of the test at which it ended.
    fn job(
        &self,
        modules: &str,
        ranks: u32,
        only: &[String],
        done: &[String],
        log: &mut File,
    ) -> Result<(Report, Option<Verdict>), Mpi4pyError> {
        let records = self.scratch.join("records");
        let temporary = self.scratch.join("tmp");
        empty(&records)?;
        empty(&temporary)?;
        let mut command = Command::new(self.prefix.join("bin/mpirun"));
        if let Some(library) = &self.on {
            command.args(["--on", library]);
        }
        command
            .args(["-n", &ranks.to_string()])
            .arg(&self.python)
            .arg(&self.recorder)
            .arg(&self.tests)
            .arg(&records)
            .args(self.one_buffer.then_some("--one-buffer"))
            .args(["--no-builddir", "-i", &format!("^({modules})\\.py$")])
            .args(only.iter().flat_map(|part| ["-k", part]))
            // The pattern has a star only at its start, so another test with the same prefix is not excluded.
            .args(done.iter().map(|test| format!("-x*{test}")))
            .env("LD_LIBRARY_PATH", self.prefix.join("lib"))
            // Workers that a test spawns must find the test's module, because they unpickle its functions.
            .env("PYTHONPATH", &self.tests)
            .env("TMPDIR", &temporary);
        let (mut seen, mut since) = (0, Duration::ZERO);
        let outcome = Running::start(&mut command)
            .map_err(Mpi4pyError::Process)?
            .wait_while(|elapsed| {
                let now = written(&records);
                if now != seen {
                    (seen, since) = (now, elapsed);
                }
                elapsed - since < self.limit
            });
        let (said, hung, good) = match outcome {
            Ok(outcome) => (
                outcome.stdout + &outcome.stderr,
                false,
                outcome.status.success(),
            ),
            Err(ProcessError::TimedOut { stdout, stderr, .. }) => (stdout + &stderr, true, false),
            Err(error) => return Err(Mpi4pyError::Process(error)),
        };
        // Errors in writing the log are ignored, because nothing reads it. If the disk is full, the
        // records are incomplete too, which `report.complete` shows.
        let _ = log.write_all(said.as_bytes());
        let report = Report::read(&records, ranks).map_err(Mpi4pyError::file(&records))?;
        let all_well = !report.ended.iter().any(|(_, verdict)| verdict.is_bad());
        let end = if hung {
            Some(Verdict::Hung)
        } else if !report.complete || (all_well && !good) {
            // A job may fail although every test has passed.
            Some(Verdict::Died)
        } else {
            None
        };
        Ok((report, end))
    }
}

/// Makes sure that the folder exists and is empty.
fn empty(folder: &Path) -> Result<(), Mpi4pyError> {
    match fs::remove_dir_all(folder) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(e),
        _ => fs::create_dir_all(folder),
    }
    .map_err(Mpi4pyError::file(folder))
}
