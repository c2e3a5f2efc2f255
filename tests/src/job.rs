//! A job of a test: a program and its launcher.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use xtask::process::{self, Outcome, ProcessError, Running};

use crate::leftovers;
use crate::setting::{compile, installation};

/// The default time limit of a job. It only ends jobs that hang: a job of seconds has taken more than a minute
/// on a machine with ten times as many busy processes as cores.
const LIMIT: Duration = Duration::from_secs(240);

/// Restores the default action of SIGHUP in this process, which its children inherit.
/// If the tests were started by nohup(1), mpirun would ignore SIGHUP.
#[allow(
    unsafe_code,
    reason = "no crate has a safe function that changes the action of a signal"
)]
fn hear_hang_up() {
    // SAFETY: SIG_DFL installs no handler, so no code of this process runs on the signal.
    unsafe { libc::signal(libc::SIGHUP, libc::SIG_DFL) };
}

/// A job that has not been started.
#[derive(Debug)]
pub struct Job {
    launcher: Option<PathBuf>,
    ranks: u32,
    launcher_arguments: Vec<OsString>,
    program: PathBuf,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    stdin: Option<File>,
    limit: Duration,
}

impl Job {
    /// Returns a job of the C program `name`, linked with this library and started by this `mpirun`.
    pub fn of(name: &str) -> Self {
        Self::command(&compile(name)).under(&installation().join("bin/mpirun"))
    }

    /// Returns a job of any program, without a launcher.
    pub fn command(program: &Path) -> Self {
        Self {
            launcher: None,
            ranks: 1,
            launcher_arguments: Vec::new(),
            program: program.to_owned(),
            arguments: Vec::new(),
            environment: Vec::new(),
            stdin: None,
            limit: LIMIT,
        }
    }

    /// Sets the launcher.
    pub fn under(mut self, launcher: &Path) -> Self {
        self.launcher = Some(launcher.to_owned());
        self
    }

    /// Removes the launcher; the program is started directly.
    pub fn alone(mut self) -> Self {
        self.launcher = None;
        self
    }

    pub fn ranks(mut self, ranks: u32) -> Self {
        self.ranks = ranks;
        self
    }

    /// Adds arguments for the launcher.
    pub fn with<S: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = S>) -> Self {
        self.launcher_arguments
            .extend(arguments.into_iter().map(|a| a.as_ref().to_owned()));
        self
    }

    /// Adds an argument for the program.
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.environment
            .push((name.into(), value.as_ref().to_owned()));
        self
    }

    /// Makes the program use the library that is installed under `prefix`,
    /// instead of the library with which it was linked.
    pub fn on_library_of(self, prefix: &Path) -> Self {
        self.env("LD_LIBRARY_PATH", prefix.join("lib"))
    }

    pub fn stdin(mut self, file: File) -> Self {
        self.stdin = Some(file);
        self
    }

    pub fn limit(mut self, seconds: u64) -> Self {
        self.limit = Duration::from_secs(seconds);
        self
    }

    #[track_caller]
    pub fn start(self) -> Started {
        let temporary = tempfile::tempdir().unwrap_or_else(|e| panic!("no temporary folder: {e}"));
        // The unique name of this folder is also the mark of the job's processes.
        let mark = temporary.path().display().to_string();
        let mut command = match &self.launcher {
            Some(launcher) => {
                let mut command = Command::new(launcher);
                command
                    .args(["-n", &self.ranks.to_string()])
                    .args(&self.launcher_arguments)
                    .arg(&self.program);
                command
            }
            None => Command::new(&self.program),
        };
        command
            .args(&self.arguments)
            .envs(self.environment)
            .env(leftovers::MARK, &mark)
            .env("TMPDIR", temporary.path());
        let is_hydra = self.launcher.iter().any(|l| l.ends_with("mpiexec.hydra"));
        command.stdin(match self.stdin {
            Some(file) => file.into(),
            None if is_hydra => process::silence(),
            None => Stdio::null(),
        });
        hear_hang_up();
        let running = Running::start(&mut command).unwrap_or_else(|e| panic!("{e}"));
        Started {
            running,
            mark,
            temporary,
            limit: self.limit,
        }
    }

    /// Runs the job to its end; accepts any exit status.
    #[track_caller]
    pub fn run(self) -> Outcome {
        self.start().wait()
    }

    /// Runs the job to its end; panics unless it succeeds.
    #[track_caller]
    pub fn succeeds(self) -> Outcome {
        let outcome = self.run();
        assert!(
            outcome.status.success(),
            "{}\nstdout:\n{}\nstderr:\n{}",
            outcome.status,
            outcome.stdout,
            outcome.stderr
        );
        outcome
    }

    /// Runs a C program to its end; panics unless it prints that all its checks passed.
    #[track_caller]
    pub fn holds(self) -> Outcome {
        let (ranks, name) = (
            self.ranks,
            self.program
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
        );
        let outcome = self.succeeds();
        let line = format!("all claims of {name} hold on {ranks} ranks");
        assert!(
            outcome.stdout.lines().any(|l| l == line),
            "no line {line:?} in:\n{}",
            outcome.stdout
        );
        outcome
    }
}

/// A running job.
#[derive(Debug)]
pub struct Started {
    running: Running,
    mark: String,
    temporary: TempDir,
    limit: Duration,
}

impl Started {
    /// Waits until `processes` processes have printed `ready PID`.
    /// Returns their process ids in the order of the output.
    #[track_caller]
    pub fn ready(&self, processes: usize) -> Vec<i32> {
        let begin = Instant::now();
        loop {
            let printed = self.running.stdout_so_far();
            let ids: Vec<i32> = printed
                .lines()
                .filter_map(|line| line.strip_prefix("ready ")?.trim().parse().ok())
                .collect();
            if ids.len() >= processes {
                return ids;
            }
            assert!(
                begin.elapsed() < self.limit,
                "only {} of {processes} processes are ready",
                ids.len()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits for a line of standard output that begins with `beginning`; returns the rest of the line.
    #[track_caller]
    pub fn says(&self, beginning: &str) -> String {
        let begin = Instant::now();
        loop {
            let printed = self.running.stdout_so_far();
            // A line without a newline may still be incomplete.
            let whole = printed.rfind('\n').map_or("", |end| &printed[..end]);
            if let Some(rest) = whole.lines().find_map(|line| line.strip_prefix(beginning)) {
                return rest.to_owned();
            }
            assert!(
                begin.elapsed() < self.limit,
                "no line begins with {beginning:?} in:\n{printed}"
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Returns true if the job has printed this line on standard output.
    pub fn has_said(&self, line: &str) -> bool {
        self.running
            .stdout_so_far()
            .lines()
            .any(|said| said == line)
    }

    /// Waits until the launcher and the ranks have printed `words` on standard error `times` times.
    #[track_caller]
    pub fn complains(&self, words: &str, times: usize) {
        let begin = Instant::now();
        loop {
            let printed = self.running.stderr_so_far();
            if printed.matches(words).count() >= times {
                return;
            }
            assert!(
                begin.elapsed() < self.limit,
                "{words:?} is not {times} times in:\n{printed}"
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Sends a signal to the launcher only.
    pub fn signal(&self, signal: Signal) {
        send(i32::try_from(self.process()).unwrap_or(0), signal);
    }

    /// Returns the launcher's process ID.
    pub fn process(&self) -> u32 {
        self.running.id()
    }

    /// Returns the job's mark, the value of [`leftovers::MARK`] in the environment of its processes.
    pub fn mark(&self) -> &str {
        &self.mark
    }

    /// Waits for the end of the job, and checks that no process and no file is left.
    #[track_caller]
    pub fn wait(self) -> Outcome {
        self.wait_with_grace(leftovers::GRACE)
    }

    /// As `wait`, but checks only for processes: launchers of other libraries may leave files.
    #[track_caller]
    pub fn wait_for_processes(self, grace: Duration) -> Outcome {
        let nothing = self.temporary.path().join("nothing");
        let mark = self.mark.clone();
        let outcome = self.running.wait(self.limit);
        leftovers::assert_none_after(&mark, &nothing, grace);
        outcome.unwrap_or_else(|error| panic!("{error}"))
    }

    /// As `wait`, but processes may live for `grace` after the launcher's end.
    #[track_caller]
    pub fn wait_with_grace(self, grace: Duration) -> Outcome {
        let outcome = match self.running.wait(self.limit) {
            Ok(outcome) => outcome,
            Err(error @ ProcessError::TimedOut { .. }) => {
                // The launcher was killed; its ranks must have ended before the next test starts.
                leftovers::assert_none(&self.mark, self.temporary.path());
                panic!("{error}");
            }
            Err(error) => panic!("{error}"),
        };
        leftovers::assert_none_after(&self.mark, self.temporary.path(), grace);
        outcome
    }
}

/// Sends a signal to one process; it is no error if the process has already ended.
pub fn send(process: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(process) {
        let _ = kill_process(pid, signal);
    }
}
