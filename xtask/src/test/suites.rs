//! Runs the workspace's test programs in three concurrent lanes.
//!
//! cargo runs test programs one after another. Some programs wait for a proof's solver,
//! a package manager or a linker, others wait for processes and time limits,
//! so a sequential run leaves cores idle.
//!
//! Each program of `cargo test` runs once, in its package's folder, even if earlier programs failed.
//! After the program has ended, its complete output is printed below its name.
//! Each program has its own folder for temporary files, which must be empty when the program ends.
//!
//! The programs of [`BACKGROUND`] run at a low priority, because the time limits in the other
//! programs assume an idle machine.
//! The programs of [`BESIDE`] use the cores while the foreground lane waits.
//! The lists balance the lanes: all three end at about the same time, so that no core is idle at the end.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::num::NonZero;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::MemfdFlags;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use serde::Deserialize;

use super::failures;
use super::usage;
use crate::process::{self, ProcessError};
use crate::workspace;

/// Test programs (package folder, name) that compute with tools or build installations,
/// the slowest first; their time limits are far above their usual durations.
const BACKGROUND: &[(&str, &str)] = &[
    ("hdl", "proofs"),
    ("tests", "plugin"),
    ("tests", "packages"),
    ("hdl", "channels"),
    ("hdl", "boards"),
    ("barrier-driver", "firmware"),
    ("hdl", "gates"),
    ("hdl", "driver_on_rtl"),
    ("hdl", "model_and_rtl"),
    ("hdl", "cells"),
];

/// Test programs of a second lane (package folder, name) at normal priority:
/// they wait for daemons and for processes to die, or compute without time limits.
/// The duration of this lane is about that of the foreground lane; the processor times and durations that the command prints show it.
const BESIDE: &[(&str, &str)] = &[
    ("tests", "slurm"),
    ("tests", "dead_jobs"),
    ("tests", "fortran_programs"),
    ("tests", "faults"),
    ("tests", "on"),
    ("tests", "compat"),
    ("mpi-core/p2p", "choice"),
    ("mpi-core/p2p", "ob1"),
    ("mpi-core/coll", "mpi_coll"),
    ("mpi-core/types", "mpi_types"),
    ("barrier-driver", "channel_pins"),
    ("coll-hwbarr", "coll_hwbarr"),
    ("sim/command", "readme"),
    ("sim/simulator", "barrier_simulator"),
    ("hdl", "mutation"),
    ("hdl", "parameters"),
    ("hdl", "registers"),
    ("hdl", "coverage"),
    ("hdl/kit", "kit"),
    ("xtask", "tidy"),
];

/// The last program of the foreground lane. It tests that ranks have equal waiting times,
/// which is less likely on a loaded machine.
const LAST: &[(&str, &str)] = &[("tests", "hang")];

/// Test programs whose tests only wait for the end of a time limit, and libtest's minimum number of threads for them.
/// With one thread per core, two cores are idle for twice as long.
/// With more than four, the jobs that start at once use up a part of their time limits on a slow machine.
const WAITING: (&[(&str, &str)], usize) = (LAST, 4);

/// Packages whose test programs run only in the long form.
/// A library that converts between two ABIs is tested function by function against a mock, and each such test compiles the library again.
/// The short form has each direction once and each family of ABIs once: Open MPI's programs on this library, and programs of the standard ABI on MPICH.
const LONG_PACKAGES: &[&str] = &["compat-mpich", "on-openmpi"];

/// The nice(1) value of the programs of the background lane and of the source checks (`super::checks`):
/// they mostly use the CPU time that the other two lanes leave.
/// With 19, Miri on mpi-base got so little beside other programs that it did not end in 20 minutes.
const NICENESS: &str = "10";

/// Time limit of a test program; the slowest takes four minutes on two idle cores.
pub const LIMIT: Duration = Duration::from_secs(20 * 60);
/// Time limit of a program at a low priority, which may get little CPU time beside other load:
/// Miri on mpi-base and the proofs of hdl have exceeded 20 minutes beside other builds.
pub const LIMIT_AT_LOW_PRIORITY: Duration = Duration::from_secs(60 * 60);

/// One test program.
#[derive(Debug)]
pub struct Suite {
    name: String,
    /// The package's folder, which is the program's working folder.
    folder: PathBuf,
    program: PathBuf,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    /// True for a cargo test program, whose tests may be marked as long (ignored by default).
    has_marks: bool,
}

/// The result of running a test program.
#[derive(Debug, Default)]
struct Ran {
    /// What the program wrote to standard output and standard error.
    output: Vec<u8>,
    /// The exit status; `None` if the program exceeded the time limit and was killed.
    status: Option<ExitStatus>,
    /// The CPU time of the program and its descendants, in seconds.
    processor_seconds: f64,
}

/// All test programs, built and assigned to lanes.
#[derive(Debug)]
pub struct Suites {
    foreground: Vec<Suite>,
    background: Vec<Suite>,
    beside: Vec<Suite>,
}

/// Names and values of environment variables for test programs.
pub type Environment<'a> = &'a [(&'a str, &'a OsStr)];

/// How test programs are run.
#[derive(Clone, Copy, Debug)]
pub struct Running<'a> {
    /// Environment variables that are set for each program.
    pub environment: Environment<'a>,
    /// True to run also the tests that are ignored because they take long.
    pub long: bool,
    /// Time limit of each program.
    pub limit: Duration,
}

/// Tests that are ignored because this command does not install their requirements.
pub const NEED_MORE: &[&str] = &[
    "a_browser_shows_every_plot_of_a_report",
    "two_kernels_synchronise_through_the_simulator",
];

impl Running<'_> {
    fn arguments(self) -> Vec<&'static str> {
        match self.long {
            true => {
                let skipped = NEED_MORE.iter().flat_map(|name| ["--skip", name]);
                ["--include-ignored"].into_iter().chain(skipped).collect()
            }
            false => Vec::new(),
        }
    }
}

/// The fields of cargo's JSON messages that this module uses.
#[derive(Deserialize)]
struct Message {
    manifest_path: PathBuf,
    target: Target,
    profile: Profile,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

impl Suites {
    /// Builds all test programs, without those of [`LONG_PACKAGES`] unless `long`; cargo prints its own progress.
    pub fn build(long: bool) -> Result<Self, ProcessError> {
        let mut command = super::cargo_command(&["test", "--workspace", "--no-run"]);
        if !long {
            let excluded = LONG_PACKAGES.iter().flat_map(|name| ["--exclude", name]);
            command.args(excluded);
        }
        command
            .arg("--message-format=json-render-diagnostics")
            .stdin(Stdio::null())
            .stderr(Stdio::inherit());
        let program = process::spelled(&command);
        match command.output() {
            Ok(output) if output.status.success() => {
                Ok(Self::of(&String::from_utf8_lossy(&output.stdout)))
            }
            Ok(output) => Err(ProcessError::Failed {
                program,
                status: output.status,
                stderr: String::new(),
            }),
            Err(reason) => Err(ProcessError::Start { program, reason }),
        }
    }

    fn of(messages: &str) -> Self {
        let suites: Vec<_> = messages.lines().filter_map(suite).collect();
        let (mut background, rest): (Vec<_>, Vec<_>) = suites
            .into_iter()
            .partition(|suite| suite.place(BACKGROUND).is_some());
        let (beside, mut foreground): (Vec<_>, Vec<_>) = rest
            .into_iter()
            .partition(|suite| suite.place(BESIDE).is_some());
        background.sort_by_key(|suite| suite.place(BACKGROUND));
        foreground.sort_by_cached_key(|suite| {
            let is_last = suite.place(LAST).is_some();
            (is_last, suite.folder.clone(), suite.name.clone())
        });
        Self {
            foreground,
            background,
            beside,
        }
    }

    /// Returns true if cargo's messages list no test program, which means that their format is unknown.
    pub fn is_empty(&self) -> bool {
        [&self.foreground, &self.background, &self.beside]
            .iter()
            .all(|lane| lane.is_empty())
    }

    /// Adds a test program to the background lane.
    pub fn add_to_background(&mut self, suite: Suite) {
        // Inserted after the first, slowest program, so that no slow program starts last.
        let place = self.background.len().min(1);
        self.background.insert(place, suite);
    }

    /// Runs the programs of the foreground lane; returns a sentence for each failure.
    pub fn foreground(&self, how: Running<'_>) -> Vec<String> {
        let failed = |suite: &Suite| suite.run(&[], how);
        self.foreground.iter().filter_map(failed).collect()
    }

    /// Runs the programs of [`BESIDE`]; returns a sentence for each failure.
    pub fn beside(&self, how: Running<'_>) -> Vec<String> {
        let failed = |suite: &Suite| suite.run(&[], how);
        self.beside.iter().filter_map(failed).collect()
    }

    /// Runs the programs of [`BACKGROUND`] at low priority; returns a sentence for each failure.
    pub fn background(&self, how: Running<'_>) -> Vec<String> {
        at_low_priority(&self.background, how)
    }
}

/// Runs programs at low priority, with the time limit for it; returns a sentence for each failure.
pub fn at_low_priority(suites: &[Suite], how: Running<'_>) -> Vec<String> {
    let how = Running {
        limit: LIMIT_AT_LOW_PRIORITY,
        ..how
    };
    let failed = |suite: &Suite| suite.run(&["nice", "-n", NICENESS], how);
    suites.iter().filter_map(failed).collect()
}

/// Returns the test program of a line of cargo's messages, if any.
fn suite(line: &str) -> Option<Suite> {
    let message = serde_json::from_str::<Message>(line).ok()?;
    let program = message.executable.filter(|_| message.profile.test)?;
    Some(Suite {
        name: message.target.name,
        folder: message.manifest_path.parent()?.to_owned(),
        program,
        arguments: Vec::new(),
        environment: Vec::new(),
        has_marks: true,
    })
}

impl Suite {
    /// Returns a command as a test program, which passes if the command succeeds.
    pub fn of(name: &str, command: &Command) -> Suite {
        let given =
            |(name, value): (&OsStr, Option<&OsStr>)| Some((name.to_owned(), value?.to_owned()));
        Suite {
            name: name.to_owned(),
            folder: workspace::root().to_owned(),
            program: command.get_program().into(),
            arguments: command.get_args().map(OsStr::to_owned).collect(),
            environment: command.get_envs().filter_map(given).collect(),
            has_marks: false,
        }
    }

    fn package(&self) -> &Path {
        let root = workspace::root();
        self.folder.strip_prefix(root).unwrap_or(&self.folder)
    }

    /// Returns the program's index in a list of package folders and programs.
    fn place(&self, list: &[(&str, &str)]) -> Option<usize> {
        list.iter()
            .position(|(package, name)| self.package() == Path::new(package) && self.name == *name)
    }

    /// Returns libtest's number of threads if the program needs another than one per core.
    fn threads(&self) -> Option<usize> {
        let (programs, minimum) = WAITING;
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        self.place(programs).map(|_| cores.max(minimum))
    }

    /// Runs the program, with the command `below` (such as nice) before it, and prints its output.
    /// If the program fails, returns a sentence with the reason,
    /// followed by the failed tests with their messages.
    fn run(&self, below: &[&str], how: Running<'_>) -> Option<String> {
        let begin = Instant::now();
        let (ran, ended) = match self.tried(below, how) {
            Ok((ran, ended)) => (ran, ended),
            Err(reason) => (Ran::default(), Err(format!("cannot be run: {reason}"))),
        };
        let took = begin.elapsed().as_secs_f64();
        let used = ran.processor_seconds;
        let output = ran.output;
        let mut out = io::stdout().lock();
        // An error is ignored: standard output may have been closed.
        let _ = writeln!(
            out,
            "     Ran {self}, which took {took:.1} s and {used:.1} s of processor time"
        );
        let _ = out.write_all(&output);
        let why = ended.err()?;
        let failures = failures::summary(&output).into_iter();
        let lines = failures.map(|line| format!("\n    {line}"));
        Some(format!("{self} {why}{}", lines.collect::<String>()))
    }

    /// Returns the program's output, and an error if it failed or left files behind.
    fn tried(&self, below: &[&str], how: Running<'_>) -> io::Result<(Ran, Result<(), String>)> {
        // The name is short, because the path of a socket is limited to about a hundred characters.
        let scratch = tempfile::Builder::new().prefix("pt-").tempdir()?;
        let mut environment = how.environment.to_vec();
        environment.push(("TMPDIR", scratch.path().as_os_str()));
        let how = Running {
            environment: &environment,
            ..how
        };
        let ran = self.ended(below, how)?;
        let ended = verdict(ran.status, how.limit).and_then(|()| is_empty(scratch.path()));
        // Files that cannot be removed have been reported as left behind.
        drop(scratch);
        Ok((ran, ended))
    }

    /// Runs the program until it exits, or kills it after the time limit.
    ///
    /// The program stays in this process group, so an interrupt from the terminal ends it too.
    fn ended(&self, below: &[&str], how: Running<'_>) -> io::Result<Ran> {
        // A file in memory instead of a pipe: a process that outlives the tests could keep a pipe open.
        let output = File::from(rustix::fs::memfd_create("output", MemfdFlags::CLOEXEC)?);
        let program = self.program.as_os_str();
        let mut words = below.iter().map(OsStr::new).chain([program]);
        let marks = match self.has_marks {
            true => how.arguments(),
            false => Vec::new(),
        };
        let threads = self
            .threads()
            .map(|number| ("RUST_TEST_THREADS", number.to_string()));
        let mut child = Command::new(words.next().unwrap_or(program))
            .args(words)
            .args(&self.arguments)
            .args(marks)
            .current_dir(&self.folder)
            .env("CARGO_MANIFEST_DIR", &self.folder)
            .envs(how.environment.iter().copied())
            .envs(threads)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output.try_clone()?)
            .spawn()?;
        let begin = Instant::now();
        let pid = Pid::from_child(&child);
        // `NOWAIT` leaves the process a zombie, because its CPU time is then read from /proc.
        let ended = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let is_in_time = loop {
            match waitid(WaitId::Pid(pid), ended)? {
                Some(_) => break true,
                None if begin.elapsed() >= how.limit => {
                    child.kill()?;
                    break false;
                }
                None => thread::sleep(Duration::from_millis(20)),
            }
        };
        let processor_seconds = usage::processor_seconds(pid).unwrap_or_default();
        let status = Some(child.wait()?).filter(|_| is_in_time);
        let length = usize::try_from(output.metadata()?.len()).unwrap_or(usize::MAX);
        let mut text = vec![0; length];
        output.read_exact_at(&mut text, 0)?;
        Ok(Ran {
            output: text,
            status,
            processor_seconds,
        })
    }
}

impl fmt::Display for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.has_marks {
            true => write!(f, "{} of {}", self.name, self.package().display()),
            false => f.write_str(&self.name),
        }
    }
}

fn verdict(status: Option<ExitStatus>, limit: Duration) -> Result<(), String> {
    match status {
        Some(status) if status.success() => Ok(()),
        Some(status) => Err(format!("failed ({status})")),
        None => Err(format!(
            "was not done after {} minutes",
            limit.as_secs() / 60
        )),
    }
}

/// Returns an error with the contents of a folder if it is not empty.
fn is_empty(folder: &Path) -> Result<(), String> {
    let names = fs::read_dir(folder).and_then(|entries| {
        let name = |entry: io::Result<fs::DirEntry>| Ok(entry?.file_name());
        entries.map(name).collect::<io::Result<Vec<_>>>()
    });
    match names {
        Ok(names) if names.is_empty() => Ok(()),
        Ok(mut names) => {
            names.sort();
            let names: Vec<_> = names.iter().map(|name| name.to_string_lossy()).collect();
            Err(format!(
                "passed and left in its folder for temporary files: {}",
                names.join(", ")
            ))
        }
        Err(reason) => Err(format!(
            "passed, and its folder for temporary files cannot be read: {reason}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(folder: &str, name: &str, test: bool) -> String {
        let manifest = workspace::root().join(folder).join("Cargo.toml");
        serde_json::json!({
            "reason": "compiler-artifact",
            "manifest_path": manifest,
            "target": {"name": name, "kind": ["test"]},
            "profile": {"test": test, "opt_level": "1"},
            "executable": format!("/t/{name}"),
        })
        .to_string()
    }

    #[test]
    fn test_programs_are_distinguished_from_other_programs_and_put_into_their_lanes() {
        let messages = [
            line("tests", "plugin", true),
            line("hdl", "proofs", true),
            line("tests", "slurm", true),
            line("mpirun", "mpirun", false),
            line("tests", "hang", true),
            line("tests", "hosts", true),
            line("mpi-core/osc", "mpi_osc", true),
            r#"{"reason":"build-finished","success":true}"#.to_owned(),
        ];
        let suites = Suites::of(&messages.join("\n"));
        assert!(!suites.is_empty() && Suites::of(messages[3].as_str()).is_empty());
        let names = |suites: &[Suite]| suites.iter().map(Suite::to_string).collect::<Vec<_>>();
        assert_eq!(
            names(&suites.foreground),
            ["mpi_osc of mpi-core/osc", "hosts of tests", "hang of tests"]
        );
        let threads: Vec<_> = suites.foreground.iter().map(Suite::threads).collect();
        assert!(
            matches!(threads[..], [None, None, Some(4..)]),
            "{threads:?}"
        );
        assert_eq!(names(&suites.beside), ["slurm of tests"]);
        assert_eq!(
            names(&suites.background),
            ["proofs of hdl", "plugin of tests"],
            "the longest first"
        );
    }

    #[test]
    fn each_program_of_a_lane_is_there() {
        for (package, name) in BACKGROUND.iter().chain(BESIDE).chain(LAST) {
            let package = workspace::root().join(package);
            let folder = package.join("tests");
            let there = folder.join(format!("{name}.rs")).is_file() || folder.join(name).is_dir();
            // The unit tests of a library are a program that has the name of the library.
            let manifest = fs::read_to_string(package.join("Cargo.toml")).unwrap();
            let library = format!("name = \"{}\"", name.replace('_', "-"));
            assert!(
                there || manifest.contains(&library),
                "{} has no tests/{name}.rs and is not this library",
                package.display()
            );
        }
    }

    #[test]
    fn each_package_of_the_long_form_is_there() {
        let members = fs::read_to_string(workspace::root().join("Cargo.lock")).unwrap();
        for name in LONG_PACKAGES {
            let entry = format!("name = \"{name}\"\n");
            assert!(members.contains(&entry), "{name} is no package");
        }
    }

    const PLAIN: Running<'_> = Running {
        environment: &[],
        long: false,
        limit: LIMIT,
    };

    #[test]
    fn the_output_of_a_program_is_kept_and_its_failure_reported() {
        let suite = |program: &str| Suite::of(program, &Command::new(program));
        let how = Running {
            environment: &[("LANE", OsStr::new("two"))],
            ..PLAIN
        };
        let ran = suite("env").ended(&[], how).unwrap();
        assert!(String::from_utf8_lossy(&ran.output).contains("LANE=two\n"));
        assert_eq!(verdict(ran.status, LIMIT), Ok(()));
        let ran = suite("pwd").ended(&["nice"], PLAIN).unwrap();
        let output = String::from_utf8_lossy(&ran.output);
        assert_eq!(Path::new(output.trim_end()), workspace::root());
        let ran = suite("false").ended(&[], PLAIN).unwrap();
        assert_eq!(
            verdict(ran.status, LIMIT),
            Err("failed (exit status: 1)".to_owned())
        );
    }

    #[test]
    fn the_processor_time_of_a_program_and_its_children_is_known() {
        let mut command = Command::new("sh");
        // A busy loop of fixed length in the shell; in one case it runs in a child process of the shell.
        let count = "i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done";
        command.args(["-c", &format!("{count}; sh -c '{count}'; true")]);
        let ran = Suite::of("count", &command).ended(&[], PLAIN).unwrap();
        assert!(ran.processor_seconds > 0.0, "{ran:?}");
    }

    #[test]
    fn the_sentence_of_a_failed_program_names_its_failed_tests() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("program");
        let printed = "---- a::b stdout ----\nthread 'a::b' (1) panicked at a.rs:1:1:\nnot ready\n";
        fs::write(&program, format!("cat <<'END'\n{printed}END\nexit 101\n")).unwrap();
        let suite = Suite::of("program", &Command::new(&program));
        assert_eq!(
            suite
                .run(&["sh"], PLAIN)
                .unwrap()
                .lines()
                .collect::<Vec<_>>(),
            [
                "program failed (exit status: 101)",
                "    a::b",
                "      thread 'a::b' (1) panicked at a.rs:1:1:",
                "      not ready",
            ]
        );
    }

    #[test]
    fn the_long_form_runs_what_is_marked_as_long() {
        let told = |has_marks, long| {
            let suite = Suite {
                has_marks,
                ..Suite::of("echo", &Command::new("echo"))
            };
            let ran = suite.ended(&[], Running { long, ..PLAIN }).unwrap();
            String::from_utf8(ran.output).unwrap()
        };
        assert_eq!(told(true, false), "\n");
        assert!(told(true, true).starts_with("--include-ignored --skip a_browser"));
        assert_eq!(told(false, true), "\n");
    }

    #[test]
    fn a_program_that_leaves_temporary_files_has_failed() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("program");
        let suite = Suite::of("program", &Command::new(&program));
        let claims = |script: &str| {
            fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
            let (_, ended) = suite.tried(&["sh"], PLAIN).unwrap();
            ended
        };
        let left = "passed and left in its folder for temporary files: one, two";
        assert_eq!(
            claims("touch \"$TMPDIR/two\"; mkdir \"$TMPDIR/one\""),
            Err(left.to_owned())
        );
        assert_eq!(claims("rmdir \"$(mktemp -d)\""), Ok(()));
        let failed = "failed (exit status: 3)";
        assert_eq!(claims("mktemp; exit 3"), Err(failed.to_owned()));
    }
}
