//! `cargo xtask races`: runs programs with threads under ThreadSanitizer, on an instrumented library.
//!
//! The library and its dependencies are compiled with rustc's option `-Zsanitizer=thread`.
//! The option is unstable, so the command sets `RUSTC_BOOTSTRAP`, which a stable compiler requires.
//! The programs are compiled with the C compiler's `-fsanitize=thread`, and linked with the sanitizer's
//! runtime library of rustc: the C compiler's may be too old for the library.
//!
//! The instrumented library does not announce its locks to the sanitizer (`mpi-base/src/race_detectors.rs`),
//! so the sanitizer also checks the memory orderings of the locks.
//! It sees the accesses of one process only. loom's models check the protocols between processes.
//! The standard library is not instrumented, so the sanitizer does not see how a contended `Mutex`, a `Condvar` or a `OnceLock` orders threads.
//! No data of the library rely on that alone, and no report has to be suppressed.

use std::fmt;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use clap::Args;

use crate::install::InstallError;
use crate::process::{self, ProcessError, Running};
use crate::test_installation;
use crate::ui::{self, Steps};
use crate::workspace;

/// The programs to run, and how.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Numbers of processes
    #[arg(long, value_delimiter = ',', default_values_t = [2], value_parser = clap::value_parser!(u32).range(1..))]
    np: Vec<u32>,
    /// Numbers of lanes (the parameter `threads_lanes`)
    #[arg(long, value_delimiter = ',', default_values_t = [1, 4], value_parser = clap::value_parser!(u32).range(1..=8))]
    lanes: Vec<u32>,
    /// Runs of each program with each of these numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    times: u32,
    /// Only these programs of tests/programs; all that have threads if none is given
    #[arg(value_name = "PROGRAM")]
    programs: Vec<String>,
}

/// The programs of `tests/programs` that call MPI in several threads.
const PROGRAMS: &[&str] = &[
    "handed_over",
    "threads",
    "lanes",
    "dup_threads",
    "asleep_threads",
    "tool_threads",
    "first_calls",
];

/// rustc's flags for the library: line numbers for the reports, and a standard library that is not instrumented.
const FLAGS: &str =
    "-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer -g --cfg instrumented";

/// The library in cargo's folder, and the name by which programs load it.
const LIBRARY: (&str, &str) = ("libmpi_abi_library.so", "libmpi_abi.so.1");

/// The end of the name of the sanitizer's runtime library in rustc's folder of libraries.
const RUNTIME: &str = "_rt.tsan.a";

/// The first words of a report.
const REPORT: &str = "WARNING: ThreadSanitizer";

/// The time limit of a job in seconds; the slowest takes a few seconds on two idle cores.
const LIMIT: u64 = 600;

/// The reason why the programs were not run, or which reports there were.
#[derive(Debug)]
pub enum RacesError {
    /// Portcullis could not be installed.
    Install(InstallError),
    /// A compiler failed, or a job could not be started or awaited.
    Process(ProcessError),
    /// A file could not be written or read.
    File {
        /// The file or folder.
        path: PathBuf,
        /// The system error.
        reason: std::io::Error,
    },
    /// rustc has no runtime library of the sanitizer for this machine.
    NoRuntime {
        /// The folder of rustc's libraries.
        folder: PathBuf,
    },
    /// There were reports, or jobs failed: a sentence for each job. The reports are printed above.
    Jobs(Vec<String>),
}

impl fmt::Display for RacesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Install(error) => error.fmt(f),
            Self::Process(error) => error.fmt(f),
            Self::File { path, reason } => write!(f, "{}: {reason}", path.display()),
            Self::NoRuntime { folder } => write!(
                f,
                "rustc has no ThreadSanitizer for this machine: no file *{RUNTIME} in {}",
                folder.display()
            ),
            Self::Jobs(sentences) => {
                write!(f, "under ThreadSanitizer:\n  {}", sentences.join("\n  "))
            }
        }
    }
}

impl std::error::Error for RacesError {}

fn file(path: &Path) -> impl FnOnce(std::io::Error) -> RacesError {
    move |reason| RacesError::File {
        path: path.to_owned(),
        reason,
    }
}

/// Runs `cargo xtask races`.
pub fn run(options: &Options) -> Result<(), RacesError> {
    let mut steps = Steps::new(4);
    steps
        .step("installing Portcullis for the tests", || {
            test_installation::ensure()
        })
        .map_err(RacesError::Install)?;
    let folder = workspace::target().join("races");
    steps.step("building the instrumented library", || library(&folder))?;
    let names: Vec<&str> = match options.programs.is_empty() {
        true => PROGRAMS.to_vec(),
        false => options.programs.iter().map(String::as_str).collect(),
    };
    let programs = steps.step("compiling the programs", || compiled(&names, &folder))?;
    let jobs = jobs(options, &programs);
    let sentences = steps.step("running them", || {
        jobs.iter()
            .filter_map(|job| job.run(&folder).transpose())
            .collect::<Result<Vec<String>, _>>()
    })?;
    match sentences.is_empty() {
        true => {
            ui::say(&format!("      {} jobs without a report", jobs.len()));
            Ok(())
        }
        false => Err(RacesError::Jobs(sentences)),
    }
}

/// Returns a word that rustc prints, such as its host's name.
fn rustc_says(what: &str) -> Result<String, RacesError> {
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    let said = process::output(rustc.args(["--print", what]), Duration::from_secs(60));
    let said = said.map_err(RacesError::Process)?;
    Ok(said.stdout.trim().to_owned())
}

/// Builds the instrumented library, and makes it available in `lib` under the name by which programs load it.
fn library(folder: &Path) -> Result<(), RacesError> {
    let host = rustc_says("host-tuple")?;
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .current_dir(workspace::root())
        .args(["build", "--package", "mpi-abi-library"])
        // With a target, cargo does not pass the flags to build scripts and macros, which run in the compiler.
        .args(["--target", &host, "--target-dir"])
        .arg(folder)
        .env("RUSTFLAGS", FLAGS)
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env("RUSTC_BOOTSTRAP", "1")
        .stdin(Stdio::null());
    process::run(&mut command).map_err(RacesError::Process)?;
    let built = folder.join(host).join("debug").join(LIBRARY.0);
    let link = folder.join("lib").join(LIBRARY.1);
    fs::create_dir_all(folder.join("lib")).map_err(file(folder))?;
    // The link may be left from an earlier run.
    let _ = fs::remove_file(&link);
    symlink(built, &link).map_err(file(&link))
}

/// Returns the sanitizer's runtime library.
fn runtime() -> Result<PathBuf, RacesError> {
    let folder = PathBuf::from(rustc_says("target-libdir")?);
    for entry in fs::read_dir(&folder).map_err(file(&folder))? {
        let path = entry.map_err(file(&folder))?.path();
        let name = path.file_name().unwrap_or_default();
        if name.to_string_lossy().ends_with(RUNTIME) {
            return Ok(path);
        }
    }
    Err(RacesError::NoRuntime { folder })
}

/// Compiles the programs; returns their paths.
fn compiled(names: &[&str], folder: &Path) -> Result<Vec<PathBuf>, RacesError> {
    let mpicc = test_installation::installation().join("bin/mpicc");
    let runtime = runtime()?;
    let compile = |name: &&str| {
        let (program, object) = (folder.join(name), folder.join(format!("{name}.o")));
        let source = workspace::programs().join(name).with_extension("c");
        process::run(
            Command::new(&mpicc)
                .args(["-std=gnu11", "-g", "-O1", "-fsanitize=thread", "-c", "-o"])
                .args([&object, &source]),
        )?;
        process::run(
            Command::new(&mpicc)
                .arg("-o")
                .args([&program, &object])
                .arg("-Wl,--whole-archive")
                .arg(&runtime)
                // The library finds the functions of the runtime in the program.
                .args(["-Wl,--no-whole-archive", "-Wl,--export-dynamic"])
                .args(["-lpthread", "-ldl", "-lrt", "-lresolv", "-lm"]),
        )?;
        Ok(program)
    };
    let programs: Result<Vec<_>, _> = names.iter().map(compile).collect();
    programs.map_err(RacesError::Process)
}

/// One job: a program on a number of processes, each with a number of lanes.
#[derive(Debug)]
struct Job<'a> {
    program: &'a Path,
    ranks: u32,
    lanes: u32,
}

fn jobs<'a>(options: &Options, programs: &'a [PathBuf]) -> Vec<Job<'a>> {
    let mut jobs = Vec::new();
    for program in programs {
        for ranks in options.np.iter().copied() {
            for lanes in options.lanes.iter().copied() {
                jobs.extend((0..options.times).map(|_| Job {
                    program,
                    ranks,
                    lanes,
                }));
            }
        }
    }
    jobs
}

impl Job<'_> {
    fn command(&self, folder: &Path) -> Command {
        let mut libraries = std::ffi::OsString::from("LD_LIBRARY_PATH=");
        libraries.push(folder.join("lib"));
        let mut command = Command::new(test_installation::installation().join("bin/mpirun"));
        command
            .args(["-n", &self.ranks.to_string()])
            .args(["--mca", "threads_lanes", &self.lanes.to_string()])
            .arg("env")
            .arg(libraries)
            // The largest history: reports show the stacks of both accesses.
            .arg("TSAN_OPTIONS=exitcode=9:history_size=7")
            .arg(self.program);
        command
    }

    /// Runs the job. If there are reports or the job fails, prints its standard error and returns a sentence.
    fn run(&self, folder: &Path) -> Result<Option<String>, RacesError> {
        let running = Running::start(&mut self.command(folder)).map_err(RacesError::Process)?;
        let (stderr, ended) = match running.wait(Duration::from_secs(LIMIT)) {
            Ok(outcome) if outcome.status.success() => (outcome.stderr, None),
            Ok(outcome) => (outcome.stderr, Some(outcome.status.to_string())),
            Err(ProcessError::TimedOut { stderr, .. }) => {
                (stderr, Some(format!("no end after {LIMIT} s")))
            }
            Err(error) => return Err(RacesError::Process(error)),
        };
        let reports = stderr.matches(REPORT).count();
        if reports == 0 && ended.is_none() {
            return Ok(None);
        }
        ui::say(&stderr);
        let ended = ended.map_or(String::new(), |ended| format!(", {ended}"));
        Ok(Some(format!("{self}: {reports} reports{ended}")))
    }
}

impl fmt::Display for Job<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.program.file_name().unwrap_or_default();
        let (name, ranks, lanes) = (name.display(), self.ranks, self.lanes);
        write!(f, "{name} on {ranks} processes, {lanes} lanes")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_program_runs_with_each_number_of_processes_and_lanes() {
        let options = Options {
            np: vec![2, 3],
            lanes: vec![1, 4],
            times: 2,
            programs: Vec::new(),
        };
        let programs = [PathBuf::from("/r/lanes")];
        let jobs = jobs(&options, &programs);
        let counts: Vec<_> = jobs.iter().map(|job| (job.ranks, job.lanes)).collect();
        let once = [(2, 1), (2, 4), (3, 1), (3, 4)];
        assert_eq!(counts, once.map(|count| [count; 2]).concat());
        let command = jobs[2].command(Path::new("/r"));
        let words: Vec<_> = command
            .get_args()
            .map(|word| word.to_string_lossy())
            .collect();
        let expected = "-n 2 --mca threads_lanes 4 env LD_LIBRARY_PATH=/r/lib";
        assert_eq!(words[..7].join(" "), expected);
        assert_eq!(jobs[2].to_string(), "lanes on 2 processes, 4 lanes");
    }

    #[test]
    fn each_program_starts_threads() {
        for name in PROGRAMS {
            let source = workspace::programs().join(name).with_extension("c");
            let text = fs::read_to_string(&source).unwrap();
            assert!(text.contains("pthread_create"), "{name} has no threads");
        }
    }
}
