//! `cargo xtask hpcc`: builds and runs the HPC Challenge benchmark with Portcullis.
//!
//! P. Luszczek et al., "Introduction to the HPC Challenge benchmark suite", 2005: HPL, PTRANS,
//! RandomAccess, FFT, STREAM, DGEMM, latency and bandwidth, each with a check of its results.
//! The source is Debian's package; `mpicc` builds hpcc, and `mpirun` runs hpcc.
//!
//! Module `checks` parses all self-checks of hpcc; a failed check is an error that quotes its line.
//! With `--peers`, MPICH and Open MPI build and run the same program with default settings,
//! and the results for latency and bandwidth are printed side by side.
//! All files are fetched and built below the target folder.

mod checks;
mod source;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use clap::Args;

use crate::cargo::Profile;
use crate::debian_source::SourceError;
use crate::install::{self, Contents, InstallError, Programs};
use crate::packages::{self, PackagesError};
use crate::process::{ProcessError, Running};
use crate::ui::{self, Steps, bold};
use crate::venv::{self, VenvError};
use crate::workspace;
use checks::{Report, Unfit};

/// The runs of hpcc.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Numbers of processes
    #[arg(long, value_delimiter = ',', default_values_t = [2, 4], value_parser = clap::value_parser!(u32).range(1..))]
    np: Vec<u32>,
    /// The order of the matrices, from which the sizes of all tests follow
    #[arg(long, default_value = "1000", value_parser = clap::value_parser!(u32).range(100..))]
    order: u32,
    /// Also build and run it with MPICH and Open MPI
    #[arg(long)]
    peers: bool,
    /// Number of rounds; each round runs every library once, and the best of each is printed
    #[arg(long, default_value = "1", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Seconds that one run may take
    #[arg(long, value_name = "SECONDS", default_value = "300", value_parser = clap::value_parser!(u64).range(1..))]
    limit: u64,
}

/// The reason why hpcc was not built or did not pass.
#[derive(Debug)]
pub enum HpccError {
    /// OpenBLAS or a build tool is missing and could not be installed.
    Packages(PackagesError),
    /// Portcullis could not be installed.
    Install(InstallError),
    /// The Python environment of MPICH or Open MPI could not be created; `--peers` requires both.
    Venv(VenvError),
    /// A fetch, build or run could not be started, failed or timed out.
    Process(ProcessError),
    /// A file of the build or of a run could not be written or read.
    File {
        /// The file or folder.
        path: PathBuf,
        /// The system error.
        reason: std::io::Error,
    },
    /// The source package could not be fetched or unpacked.
    Source(SourceError),
    /// A run has ended, but its output does not show that all self-checks passed.
    Unfit {
        /// The name of the library in the tables.
        library: &'static str,
        /// The number of processes.
        ranks: u32,
        /// The failed self-check, quoted.
        why: Unfit,
    },
}

impl fmt::Display for HpccError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packages(error) => error.fmt(f),
            Self::Install(error) => error.fmt(f),
            Self::Venv(error) => error.fmt(f),
            Self::Process(error) => error.fmt(f),
            Self::File { path, reason } => write!(f, "{}: {reason}", path.display()),
            Self::Source(error) => error.fmt(f),
            Self::Unfit {
                library,
                ranks,
                why,
            } => write!(f, "hpcc with {library} on {ranks} processes: {why}"),
        }
    }
}

impl std::error::Error for HpccError {}

fn file(path: &Path) -> impl FnOnce(std::io::Error) -> HpccError {
    move |reason| HpccError::File {
        path: path.to_owned(),
        reason,
    }
}

/// An MPI library that builds and runs hpcc.
struct Library {
    name: &'static str,
    /// The folder that contains the library's `mpicc` and `mpirun`.
    bin: PathBuf,
    /// The environment variables that the library's `mpirun` needs.
    environment: &'static [(&'static str, &'static str)],
    /// The options of the library's `mpirun` that bind each rank to one core.
    ///
    /// Without binding, two waiting ranks that yield to each other may stay on the same core.
    /// A message then takes twenty times as long.
    bind: &'static [&'static str],
}

/// Without these variables Open MPI refuses to run as root or with more ranks than cores.
const OPEN_MPI: &[(&str, &str)] = &[
    ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
    ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
    ("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe"),
];

/// Runs `cargo xtask hpcc`.
pub fn run(options: &Options) -> Result<(), HpccError> {
    let mut steps = Steps::new(if options.peers { 6 } else { 5 });
    steps
        .step("looking for a compiler and a BLAS", || {
            packages::ensure()?;
            packages::ensure_blas()
        })
        .map_err(HpccError::Packages)?;
    let prefix = workspace::target().join("bench");
    let contents = Contents {
        profile: Profile::Release,
        bare: false,
        plugins: true,
        others: true,
        programs: Programs::All,
    };
    steps
        .step("building Portcullis with all optimisation", || {
            install::install(&prefix, &contents)
        })
        .map_err(HpccError::Install)?;
    let mut libraries = vec![Library {
        name: "Portcullis",
        bin: prefix.join("bin"),
        environment: &[],
        bind: &["--bind-to", "core"],
    }];
    if options.peers {
        let peers = steps.step("fetching MPICH and Open MPI", peers);
        libraries.extend(peers.map_err(HpccError::Venv)?);
    }
    let archive = steps.step("fetching the source package hpcc", source::archive)?;
    let programs = steps.step("building it", || {
        let build = |library: &Library| source::build(&archive, library.name, &library.bin);
        libraries.iter().map(build).collect::<Result<Vec<_>, _>>()
    })?;
    let libraries: Vec<_> = libraries.iter().zip(&programs).collect();
    steps.step("running it", || {
        let each = |ranks: &u32| compare(options, *ranks, &libraries);
        options.np.iter().try_for_each(each)
    })
}

fn peers() -> Result<Vec<Library>, VenvError> {
    let peers = [
        ("MPICH", venv::MPICH, &[][..], &["-bind-to", "core"]),
        ("Open MPI", venv::OPEN_MPI, OPEN_MPI, &["--bind-to", "core"]),
    ];
    let each = peers.into_iter().map(|(name, venv, environment, bind)| {
        venv.ensure(&[]).map(|()| Library {
            name,
            bin: venv.path().join("bin"),
            environment,
            bind,
        })
    });
    each.collect()
}

/// Runs hpcc with each library in every round, and prints the best results.
fn compare(
    options: &Options,
    ranks: u32,
    libraries: &[(&Library, &PathBuf)],
) -> Result<(), HpccError> {
    let mut reports: Vec<Option<Report>> = libraries.iter().map(|_| None).collect();
    for _ in 0..options.rounds {
        for ((library, program), best) in libraries.iter().zip(&mut reports) {
            let report = once(options, ranks, library, program)?;
            *best = Some(match best.take() {
                Some(before) => before.best(report),
                None => report,
            });
        }
    }
    let reports: Vec<Report> = reports.into_iter().flatten().collect();
    let names: Vec<&str> = libraries.iter().map(|(library, _)| library.name).collect();
    for ((library, _), report) in libraries.iter().zip(&reports) {
        ui::say(&format!(
            "      {} on {ranks} processes: {} checks passed",
            library.name, report.passed
        ));
    }
    println!("{}", bold(&checks::heading(ranks, &names)));
    for line in checks::table(&reports) {
        println!("{line}");
    }
    Ok(())
}

fn once(
    options: &Options,
    ranks: u32,
    library: &Library,
    program: &Path,
) -> Result<Report, HpccError> {
    let failed = |why| HpccError::Unfit {
        library: library.name,
        ranks,
        why,
    };
    let folder = program.with_file_name(format!("run-{ranks}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(file(&folder))?;
    let input = folder.join("hpccinf.txt");
    fs::write(&input, self::input(options.order, ranks)).map_err(file(&input))?;
    let mut command = Command::new(library.bin.join("mpirun"));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    if ranks as usize <= cores {
        command.args(library.bind);
    }
    command
        .args(["-n", &ranks.to_string()])
        .arg(program)
        .current_dir(&folder)
        .envs(library.environment.iter().copied())
        .stdin(Stdio::null());
    let running = Running::start(&mut command).map_err(HpccError::Process)?;
    let outcome = running
        .wait(Duration::from_secs(options.limit))
        .map_err(HpccError::Process)?;
    let output = folder.join("hpccoutf.txt");
    let said = fs::read_to_string(&output).unwrap_or_default();
    if !outcome.status.success() {
        return Err(failed(Unfit::Ended {
            status: outcome.status,
            stderr: outcome.stderr,
        }));
    }
    checks::read(&said).map_err(failed)
}

/// Returns hpcc's input for a matrix of this order; the process grid is as square as possible.
fn input(order: u32, ranks: u32) -> String {
    let rows = (1..=ranks.isqrt())
        .rev()
        .find(|rows| ranks.is_multiple_of(*rows));
    let rows = rows.unwrap_or(1);
    include_str!("input.txt")
        .replace("@N@", &order.to_string())
        .replace("@P@", &rows.to_string())
        .replace("@Q@", &(ranks / rows).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grid_of_processes_is_as_square_as_can_be() {
        let grid = |ranks| {
            let input = input(500, ranks);
            let value = |line: &str| line.split_whitespace().next().map(str::to_owned);
            let lines: Vec<_> = input.lines().filter_map(value).collect();
            (lines[10].clone(), lines[11].clone())
        };
        let pair = |p: &str, q: &str| (p.to_owned(), q.to_owned());
        assert_eq!(grid(2), pair("1", "2"));
        assert_eq!(grid(4), pair("2", "2"));
        assert_eq!(grid(6), pair("2", "3"));
        assert_eq!(grid(7), pair("1", "7"));
    }
}
