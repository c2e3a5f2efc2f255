//! Execution of a program under the launcher that belongs to a library.
//!
//! A list of [`Setting`]s stores the options that make a compared library (peer) fast.
//! Arguments and environment are from the libraries' documentation and from measurements.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use bounded::{Outcome, ProcessError, Running};

use crate::benchmark::Benchmark;
use crate::choices::Settings;
use crate::clock::now_ms;
use crate::find;
use crate::table::Report;

/// The MPI implementation of a launcher, which determines the command-line syntax.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    Portcullis,
    Mpich,
    OpenMpi,
}

/// An MPI library with its launcher.
#[derive(Clone, Debug)]
pub struct Installation {
    pub family: Family,
    pub library: PathBuf,
    pub launcher: PathBuf,
}

/// Launcher arguments and environment variables for one configuration of a library.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    pub name: &'static str,
    arguments: &'static [&'static str],
    environment: &'static [(&'static str, &'static str)],
    /// Returns true if the setting applies to a benchmark on this number of ranks and of cores.
    suits: fn(Benchmark, u32, usize) -> bool,
}

const ALWAYS: fn(Benchmark, u32, usize) -> bool = |_, _, _| true;

/// The default setting, the only one for the library under test.
pub const AS_IT_COMES: &[Setting; 1] = &[Setting {
    name: "default",
    arguments: &[],
    environment: &[],
    suits: ALWAYS,
}];

const MPICH_BEST: &[Setting] = &[
    Setting {
        name: "ch4 shm, bound",
        arguments: &["-bind-to", "core"],
        environment: &[],
        suits: |_, ranks, cores| ranks as usize <= cores,
    },
    Setting {
        name: "ucx shm",
        arguments: &[],
        environment: &[("MPIR_CVAR_NOLOCAL", "1"), ("UCX_TLS", "sm,self")],
        suits: ALWAYS,
    },
    Setting {
        name: "ch4 shm",
        arguments: &[],
        environment: &[],
        // This setting is only for start-up and memory, which are also measured without UCX.
        suits: |benchmark, _, _| {
            use Benchmark as B;
            matches!(
                benchmark,
                B::Init | B::Launch | B::Memory | B::LauncherMemory
            )
        },
    },
];

const OPEN_MPI_BEST: &[Setting] = &[
    Setting {
        name: "ob1+sm",
        arguments: &["--mca", "pml", "ob1", "--mca", "btl", "self,sm"],
        environment: &[],
        suits: |_, ranks, cores| ranks as usize <= cores,
    },
    Setting {
        name: "ob1+sm, yielding",
        arguments: &[
            "--mca",
            "pml",
            "ob1",
            "--mca",
            "btl",
            "self,sm",
            "--mca",
            "mpi_yield_when_idle",
            "1",
        ],
        environment: &[],
        suits: |_, ranks, cores| ranks as usize > cores,
    },
    Setting {
        name: "ob1+sm, two copies",
        arguments: &[
            "--mca", "pml", "ob1", "--mca", "btl", "self,sm", "--mca", "smsc", "^cma",
        ],
        environment: &[],
        suits: |benchmark, _, _| {
            matches!(
                benchmark,
                Benchmark::Bw | Benchmark::Bibw | Benchmark::Latency
            )
        },
    },
    Setting {
        name: "ucx",
        arguments: &[
            "--mca",
            "pml",
            "ucx",
            "--mca",
            "pml_ucx_tls",
            "any",
            "--mca",
            "pml_ucx_devices",
            "any",
            "-x",
            "UCX_TLS=sm,self",
        ],
        environment: &[],
        suits: |_, ranks, cores| ranks as usize <= cores,
    },
];

/// Runs the library under test over TCP, also for windows, although ranks could share memory.
const OUR_TCP: &[Setting] = &[Setting {
    name: "btl tcp",
    arguments: &["--mca", "btl", "self,tcp", "--mca", "osc", "am"],
    environment: &[],
    suits: ALWAYS,
}];

const MPICH_TCP: &[Setting] = &[
    Setting {
        name: "ucx tcp, bound",
        arguments: &["-bind-to", "core"],
        environment: &[("MPIR_CVAR_NOLOCAL", "1"), ("UCX_TLS", "tcp,self")],
        suits: |_, ranks, cores| ranks as usize <= cores,
    },
    Setting {
        name: "ucx tcp",
        arguments: &[],
        environment: &[("MPIR_CVAR_NOLOCAL", "1"), ("UCX_TLS", "tcp,self")],
        suits: ALWAYS,
    },
];

const OPEN_MPI_TCP: &[Setting] = &[
    Setting {
        name: "ob1+tcp",
        arguments: &[
            "--mca",
            "pml",
            "ob1",
            "--mca",
            "btl",
            "self,tcp",
            "--mca",
            "btl_tcp_if_include",
            "lo",
        ],
        environment: &[],
        // Open MPI's windows use shared memory, whatever transport carries messages.
        suits: |benchmark, _, _| !benchmark.has_window(),
    },
    Setting {
        name: "ucx tcp",
        arguments: &[
            "--mca",
            "pml",
            "ucx",
            "--mca",
            "pml_ucx_tls",
            "any",
            "--mca",
            "pml_ucx_devices",
            "any",
            "--mca",
            "osc",
            "ucx",
            "-x",
            "UCX_TLS=tcp,self",
        ],
        environment: &[],
        suits: ALWAYS,
    },
];

/// The reason why a run returned no figures.
#[derive(Debug)]
pub enum RunError {
    NoLauncher {
        folder: PathBuf,
        searched: Vec<PathBuf>,
    },
    NoLibrary(find::NotFound),
    /// The path of this program cannot be determined.
    Program(std::io::Error),
    Launcher(ProcessError),
    Failed {
        status: ExitStatus,
        reported: String,
    },
    NoReport,
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoLauncher { folder, searched } => {
                let names: Vec<String> = searched.iter().map(|p| p.display().to_string()).collect();
                write!(
                    f,
                    "{} has a library but no launcher beside it: looked for {}",
                    folder.display(),
                    names.join(", ")
                )
            }
            Self::NoLibrary(error) => error.fmt(f),
            Self::Program(reason) => write!(f, "cannot tell where mpi-bench is: {reason}"),
            Self::Launcher(error) => error.fmt(f),
            Self::Failed { status, reported } if reported.is_empty() => {
                write!(f, "the launcher ended with {status}")
            }
            Self::Failed { status, reported } => {
                write!(f, "the launcher ended with {status}: {reported}")
            }
            Self::NoReport => write!(f, "the run ended well but printed no figures"),
        }
    }
}

impl std::error::Error for RunError {}

impl Family {
    /// The launchers' program names in `bin`; a name of only one implementation precedes `mpirun`.
    const LAUNCHERS: [(Self, &'static str); 3] = [
        (Self::Mpich, "mpiexec.hydra"),
        (Self::OpenMpi, "mpirun"),
        (Self::Portcullis, "mpirun"),
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Portcullis => "portcullis",
            Self::Mpich => "MPICH",
            Self::OpenMpi => "Open MPI",
        }
    }
}

impl Installation {
    /// Finds the library in `folder` and the launcher in `bin` beside the library's folder.
    pub fn at(folder: &Path) -> Result<Self, RunError> {
        let library = find::in_installation(folder).map_err(RunError::NoLibrary)?;
        let prefix = library.parent().and_then(Path::parent).unwrap_or(folder);
        let open_mpi = library.ends_with(find::OPEN_MPI);
        let candidates: Vec<(Family, PathBuf)> = Family::LAUNCHERS
            .iter()
            .filter(|(family, _)| (*family == Family::OpenMpi) == open_mpi)
            .map(|(family, name)| (*family, prefix.join("bin").join(name)))
            .collect();
        candidates
            .iter()
            .find(|(_, path)| path.is_file())
            .map(|(family, launcher)| Self {
                family: *family,
                library: library.clone(),
                launcher: launcher.clone(),
            })
            .ok_or_else(|| RunError::NoLauncher {
                folder: folder.to_owned(),
                searched: candidates.iter().map(|(_, path)| path.clone()).collect(),
            })
    }

    /// Returns the settings to measure for this benchmark.
    pub fn settings(
        &self,
        which: Settings,
        benchmark: Benchmark,
        ranks: u32,
    ) -> Vec<&'static Setting> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let all = match (self.family, which) {
            (Family::Portcullis, Settings::Tcp) => OUR_TCP,
            (Family::Mpich, Settings::Tcp) => MPICH_TCP,
            (Family::OpenMpi, Settings::Tcp) => OPEN_MPI_TCP,
            (Family::Portcullis, _) | (_, Settings::Default) => AS_IT_COMES,
            (Family::Mpich, Settings::Best) => MPICH_BEST,
            (Family::OpenMpi, Settings::Best) => OPEN_MPI_BEST,
        };
        all.iter()
            .filter(|setting| (setting.suits)(benchmark, ranks, cores))
            .collect()
    }

    /// Runs this program with the default setting; see [`Installation::run`].
    pub fn run_as_it_comes(
        &self,
        ranks: u32,
        extra: &[String],
        benchmark_arguments: &[String],
        timeout: Duration,
    ) -> Result<(Report, Duration), RunError> {
        let [plain] = AS_IT_COMES;
        self.run(plain, ranks, extra, benchmark_arguments, timeout)
    }

    /// Runs this program on `ranks` processes; returns the report and the command's total time.
    /// Start-up times in the report count from the start of the command.
    pub fn run(
        &self,
        setting: &Setting,
        ranks: u32,
        extra: &[String],
        benchmark_arguments: &[String],
        timeout: Duration,
    ) -> Result<(Report, Duration), RunError> {
        let mut command = self.launch(setting, ranks, extra);
        let begin = now_ms();
        command
            .arg(this_program()?)
            .arg("--lib")
            .arg(&self.library)
            .arg("--json")
            .args(benchmark_arguments);
        let (mut report, took) = run_to_end(command, timeout)?;
        report.started = report.started.map(|at| at - begin);
        Ok((report, took))
    }

    /// Runs this program with the default setting and `--explain`.
    /// Returns the first line of JSON as a `T`, and all output of the command.
    pub fn explained<T: serde::de::DeserializeOwned>(
        &self,
        ranks: u32,
        extra: &[String],
        arguments: &[String],
        timeout: Duration,
    ) -> Result<(T, String), RunError> {
        let [plain] = AS_IT_COMES;
        let mut extra = extra.to_vec();
        extra.push("--explain".into());
        let mut command = self.launch(plain, ranks, &extra);
        // `mpi-bench` reads its task (such as `guidelines`) from its first argument.
        command.arg(this_program()?).args(arguments);
        command.arg("--lib").arg(&self.library);
        let outcome = end_well(command, timeout)?;
        let mut lines = outcome.stdout.lines();
        let found = lines.find_map(|line| serde_json::from_str(line).ok());
        let value = found.ok_or(RunError::NoReport)?;
        Ok((value, outcome.stdout + &outcome.stderr))
    }

    /// Runs a program that exits immediately on `ranks` processes; returns the time of the command.
    pub fn run_nothing(
        &self,
        setting: &Setting,
        ranks: u32,
        extra: &[String],
        timeout: Duration,
    ) -> Result<Duration, RunError> {
        let mut command = self.launch(setting, ranks, extra);
        command.arg("/bin/true");
        end_well(command, timeout).map(|outcome| outcome.took)
    }

    /// Returns the launcher with its options as a command; the caller appends the program.
    pub fn launch(&self, setting: &Setting, ranks: u32, extra: &[String]) -> Command {
        let mut command = Command::new(&self.launcher);
        command
            .args(["-n", &ranks.to_string()])
            .stdin(Stdio::null());
        match self.family {
            // By default Open MPI refuses to run as root or to oversubscribe cores.
            Family::OpenMpi => {
                command.arg("--oversubscribe");
                command
                    .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
                    .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
            }
            Family::Portcullis => {
                command.args(extra);
            }
            Family::Mpich => {
                command.stdin(bounded::silence());
            }
        }
        command
            .args(setting.arguments)
            .envs(setting.environment.iter().copied());
        command
    }
}

/// Returns the path of this program, which the launchers start as the ranks.
pub fn this_program() -> Result<PathBuf, RunError> {
    std::env::current_exe().map_err(RunError::Program)
}

/// Runs a command; returns its report and the total time of the command.
fn run_to_end(command: Command, timeout: Duration) -> Result<(Report, Duration), RunError> {
    let outcome = end_well(command, timeout)?;
    let report = outcome
        .stdout
        .lines()
        .find_map(|line| serde_json::from_str::<Report>(line).ok())
        .ok_or(RunError::NoReport)?;
    Ok((report, outcome.took))
}

/// Runs a command; returns an error if it does not exit with status 0.
fn end_well(mut command: Command, timeout: Duration) -> Result<Outcome, RunError> {
    let outcome = Running::start(&mut command)
        .and_then(|running| running.wait(timeout))
        .map_err(RunError::Launcher)?;
    if !outcome.status.success() {
        let mut reported = outcome.stderr.lines().map(str::trim);
        let telling = reported
            .find(|line| line.contains("mpi-bench:") || line.chars().any(char::is_alphabetic));
        return Err(RunError::Failed {
            status: outcome.status,
            reported: telling.unwrap_or_default().to_owned(),
        });
    }
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn installation(files: &[&str]) -> (tempfile::TempDir, Result<Installation, RunError>) {
        let root = tempfile::tempdir().unwrap();
        for file in files {
            let path = root.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, b"").unwrap();
        }
        std::fs::create_dir_all(root.path().join("lib")).unwrap();
        let found = Installation::at(&root.path().join("lib"));
        (root, found)
    }

    #[test]
    fn a_library_is_run_by_the_launcher_beside_it() {
        let family = |files: &[&str]| installation(files).1.unwrap().family;
        assert_eq!(
            family(&["lib/libmpi_abi.so.1", "bin/mpirun"]),
            Family::Portcullis
        );
        assert_eq!(
            family(&["lib/libmpi_abi.so.1", "bin/mpirun", "bin/mpiexec.hydra"]),
            Family::Mpich
        );
        assert_eq!(family(&["lib/libmpi.so.40", "bin/mpirun"]), Family::OpenMpi);
    }

    #[test]
    fn a_library_without_launcher_is_refused_with_the_places_searched() {
        let refusal = installation(&["lib/libmpi_abi.so.1"])
            .1
            .unwrap_err()
            .to_string();
        assert!(
            refusal.contains("bin/mpiexec.hydra") && refusal.contains("no launcher"),
            "{refusal}"
        );
        // Each place is named once.
        assert_eq!(refusal.matches("bin/mpirun").count(), 1, "{refusal}");
        let refusal = installation(&["lib/libmpi.so.40"]).1.unwrap_err();
        assert!(!refusal.to_string().contains("hydra"), "{refusal}");
    }

    #[test]
    fn a_folder_that_does_not_exist_is_named_as_such() {
        for folder in ["/no/such", "no-such-folder"] {
            let refusal = Installation::at(Path::new(folder)).unwrap_err().to_string();
            assert_eq!(refusal, format!("there is no file or folder {folder}"));
        }
        let refusal = find::library(Some(Path::new("/no/such"))).unwrap_err();
        assert_eq!(refusal.to_string(), "there is no file or folder /no/such");
    }

    #[test]
    fn a_run_that_takes_too_long_is_stopped_with_all_it_started() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 60 & echo $!; wait"]);
        // On a busy machine `sleep` may start late, so the time limit grows until it has started.
        let sleeper = (1..=8)
            .find_map(|tenths| {
                let mut again = Command::new(command.get_program());
                again.args(command.get_args());
                match run_to_end(again, Duration::from_millis(100 << tenths)) {
                    Err(RunError::Launcher(ProcessError::TimedOut { stdout, .. })) => {
                        Some(stdout).filter(|reported| reported.ends_with('\n'))
                    }
                    other => panic!("{other:?}"),
                }
            })
            .expect("the shell never came to its second command");
        let status = std::fs::read_to_string(format!("/proc/{}/stat", sleeper.trim()));
        // The process has ended, or is a zombie that init has not reaped yet.
        assert!(
            status.map_or(true, |s| s.contains(") Z")),
            "the sleeper survived"
        );
    }

    #[test]
    fn a_failing_launcher_is_quoted() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo 'no such host' >&2; exit 3"]);
        let sentence = run_to_end(command, Duration::from_secs(10))
            .unwrap_err()
            .to_string();
        assert!(
            sentence.contains("no such host") && sentence.contains('3'),
            "{sentence}"
        );
    }
}
