//! `cargo xtask mpi4py`: runs mpi4py's own tests, unmodified, on Portcullis.
//!
//! Each test module is a separate job on each number of processes; with `--quick` one job
//! runs all modules. Failures are compared with `tests/mpi4py/failing.txt`.
//! The command fails for an unlisted failure and for a listed test that passes;
//! every wait has a time limit.

mod known;
mod module;
mod record;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;

use self::known::{BadLine, Difference, Known, Results};
use self::module::{Ended, Setting};
use self::record::Verdict;
use crate::install::InstallError;
use crate::library;
use crate::packages::{self, PackagesError};
use crate::process::ProcessError;
use crate::test_installation::{self, BuildError};
use crate::ui::{self, Steps, faint};
use crate::venv::{self, Venv, VenvError};
use crate::workspace;

/// The tests to run, and their limits.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Numbers of processes
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 3, 5], value_parser = clap::value_parser!(u32).range(1..))]
    np: Vec<u32>,
    /// Run the tests of `cargo xtask test`: without the slow modules, all in one job
    #[arg(long)]
    quick: bool,
    /// Leave out repetitions: classes with the tests of another class on a duplicate of its communicator, and other kinds of Python buffers
    #[arg(long)]
    once: bool,
    /// Run the tests on another library, as mpirun's --on does: openmpi, mpich or a file
    #[arg(long, value_name = "LIBRARY", value_parser = library::named)]
    on: Option<String>,
    /// The list to compare with [default: Portcullis's list; none with --on]
    #[arg(long, value_name = "FILE")]
    list: Option<PathBuf>,
    /// Seconds in which a rank has to begin or end a test
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = clap::value_parser!(u64).range(1..))]
    limit: u64,
    /// Only tests whose name, module.Class.method, has one of these parts; all if none is given
    #[arg(value_name = "TEST")]
    tests: Vec<String>,
}

impl Options {
    /// Returns the options for the tests of `cargo xtask test`.
    pub fn quick() -> Self {
        Self {
            np: vec![1, 2, 3],
            quick: true,
            once: false,
            on: None,
            list: None,
            limit: 30,
            tests: Vec::new(),
        }
    }

    /// Returns true if a requested test belongs to this module.
    fn wants_module(&self, module: &str) -> bool {
        let of = |part: &str| part.split('.').next().is_some_and(|m| module.contains(m));
        let wanted = self.tests.is_empty() || self.tests.iter().any(|part| of(part));
        wanted && !(self.quick && LONG.contains(&module))
    }

    /// Returns true if a test, class or module was requested.
    fn wants(&self, test: &str, ranks: u32) -> bool {
        let module = test.split('.').next().unwrap_or(test);
        let part = |part: &String| test.contains(part.as_str());
        self.np.contains(&ranks)
            && self.wants_module(module)
            && !(self.once && repeats(test))
            && (self.tests.is_empty() || self.tests.iter().any(part))
    }
}

/// The end of an exclusion pattern that excludes the tests that [`repeats`] knows.
const REPEATED: &str = "Dup.*";

/// Returns true for a test of a class such as `TestP2PBufWorldDup`, which has the tests of `TestP2PBufWorld` on a duplicate.
fn repeats(test: &str) -> bool {
    test.split('.')
        .nth(1)
        .is_some_and(|class| class.ends_with("Dup"))
}

/// The slowest modules, which `--quick` omits.
const LONG: &[&str] = &["test_datatype", "test_msgspec"];

const LIST: &str = "tests/mpi4py/failing.txt";

/// The reason why the tests were not run or did not pass.
#[derive(Debug)]
pub enum Mpi4pyError {
    /// Compilers or tools are missing and could not be installed.
    Packages(PackagesError),
    /// The source archive of mpi4py with the tests could not be fetched or unpacked.
    Venv(VenvError),
    /// mpi4py could not be built with Portcullis's `mpicc`.
    Build(BuildError),
    /// Portcullis could not be installed.
    Install(InstallError),
    /// A job could not be started or waited for; a job that hangs or dies is a test result.
    Process(ProcessError),
    /// A file of the runs, or the list of failures, could not be written or read.
    File {
        /// The file or folder.
        path: PathBuf,
        /// The system error.
        reason: std::io::Error,
    },
    /// The list of known failures has a malformed line; correct `tests/mpi4py/failing.txt`.
    List(BadLine),
    /// No test of mpi4py matches the user's request.
    NoSuch {
        /// The test names as given by the user.
        tests: Vec<String>,
    },
    /// An unlisted test failed, or a listed test passed; a sentence about each has been printed.
    Different {
        /// The number of tests whose results differ from the list.
        count: usize,
    },
}

impl Mpi4pyError {
    fn file(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        move |reason| Self::File {
            path: path.to_owned(),
            reason,
        }
    }
}

impl fmt::Display for Mpi4pyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packages(error) => error.fmt(f),
            Self::Venv(error) => error.fmt(f),
            Self::Build(error) => error.fmt(f),
            Self::Install(error) => error.fmt(f),
            Self::Process(error) => error.fmt(f),
            Self::File { path, reason } => write!(f, "{}: {reason}", path.display()),
            Self::List(error) => write!(f, "{LIST}: {error}"),
            Self::NoSuch { tests } => {
                write!(f, "mpi4py has no test module like {}", tests.join(" or "))
            }
            Self::Different { count } => {
                write!(f, "mpi4py's tests and {LIST} differ in {count} places")
            }
        }
    }
}

impl std::error::Error for Mpi4pyError {}

/// Runs `cargo xtask mpi4py`.
pub fn run(options: &Options) -> Result<(), Mpi4pyError> {
    let mut steps = Steps::new(4);
    steps
        .step("looking for compilers and tools", || {
            match test_installation::is_made() {
                // `cargo xtask test` has looked for them, and has made the installation.
                true => Ok(()),
                false => packages::ensure(),
            }
        })
        .map_err(Mpi4pyError::Packages)?;
    steps
        .step("installing Portcullis", test_installation::ensure)
        .map_err(Mpi4pyError::Install)?;
    steps
        .step("building mpi4py from source with our mpicc", || {
            test_installation::build_mpi4py(environment(options))
        })
        .map_err(Mpi4pyError::Build)?;
    steps.step("running mpi4py's tests", || check(options))
}

/// Returns the Python environment with mpi4py. For Portcullis, functions beyond the standard are declared too.
fn environment(options: &Options) -> Venv {
    match options.on {
        Some(_) => venv::MPI4PY_OF_THE_STANDARD,
        None => venv::MPI4PY,
    }
}

/// Returns the list of known failures to compare with.
fn list(options: &Options) -> Result<Known, Mpi4pyError> {
    let path = match (&options.list, &options.on) {
        (Some(path), _) => path.clone(),
        (None, Some(_)) => return Ok(Known::default()),
        (None, None) => workspace::root().join(LIST),
    };
    let text = fs::read_to_string(&path).map_err(Mpi4pyError::file(&path))?;
    Known::parse(&text).map_err(Mpi4pyError::List)
}

/// Runs the tests on the installation, and compares the results with the list.
pub fn check(options: &Options) -> Result<(), Mpi4pyError> {
    let known = list(options)?;
    let environment = environment(options);
    let setting = Setting {
        prefix: test_installation::installation(),
        on: options.on.clone(),
        python: environment.bin("python"),
        tests: environment
            .source()
            .map_err(Mpi4pyError::Venv)?
            .join("test"),
        recorder: workspace::root().join("tests/mpi4py/record.py"),
        one_buffer: options.once,
        scratch: workspace::target().join("mpi4py"),
        limit: Duration::from_secs(options.limit),
    };
    fs::create_dir_all(&setting.scratch).map_err(Mpi4pyError::file(&setting.scratch))?;
    let mut modules = modules(&setting.tests)?;
    modules.retain(|module| options.wants_module(module));
    if modules.is_empty() {
        return Err(Mpi4pyError::NoSuch {
            tests: options.tests.clone(),
        });
    }
    let mut results = Results::default();
    let mut take = |what: &str, ranks: u32, ended: Ended| {
        say_ended(what, ranks, &ended);
        if !known.compare(&ended.results, |_, _| false).is_empty() {
            ui::say(&format!("      see {}", ended.log.display()));
        }
        results.merge(ended.results);
    };
    for &ranks in &options.np {
        let mut without: Vec<String> = match options.quick {
            true => known.hanging(ranks).map(str::to_owned).collect(),
            false => Vec::new(),
        };
        without.extend(options.once.then(|| REPEATED.to_owned()));
        let mut modules = modules.clone();
        modules.retain(|module| !without.contains(module));
        if options.quick {
            let together = setting.run_together(&modules, ranks, &options.tests, &without)?;
            if let Some(ended) = together {
                take("all modules", ranks, ended);
                continue;
            }
            ui::say(&format!(
                "      the job with all modules on {ranks} failed; each module has one of its own"
            ));
        }
        for module in &modules {
            let ended = setting.run(module, ranks, &options.tests, &without)?;
            take(module, ranks, ended);
        }
    }
    let asked = |test: &str, ranks| {
        options.wants(test, ranks)
            && !(options.quick && known.hanging(ranks).any(|hanging| hanging == test))
    };
    let differences = known.compare(&results, asked);
    println!(
        "mpi4py's tests on {} processes: {}",
        options
            .np
            .iter()
            .map(u32::to_string)
            .collect::<Vec<_>>()
            .join(", "),
        summary(&results)
    );
    if differences.is_empty() {
        return Ok(());
    }
    differences
        .iter()
        .map(Difference::to_string)
        .for_each(|sentence| println!("  {sentence}"));
    Err(Mpi4pyError::Different {
        count: differences.len(),
    })
}

fn say_ended(what: &str, ranks: u32, ended: &Ended) {
    ui::say(&format!(
        "      {what} on {ranks}: {} {}",
        summary(&ended.results),
        faint(&format!("{:.1} s", ended.took.as_secs_f64()))
    ));
}

/// Formats the number of tests for each verdict.
fn summary(results: &Results) -> String {
    let mut parts = vec![format!(
        "{} passed",
        results.count(|verdict| verdict == Verdict::Passed)
    )];
    for (what, verdict) in [
        ("skipped", Verdict::Skipped),
        ("found something missing", Verdict::Lacking),
        ("failed", Verdict::Failed),
        ("hung", Verdict::Hung),
        ("ended the job", Verdict::Died),
    ] {
        match results.count(|v| v == verdict) {
            0 => {}
            n => parts.push(format!("{n} {what}")),
        }
    }
    parts.join(", ")
}

/// Returns the test modules of the source package, sorted by name.
fn modules(tests: &Path) -> Result<Vec<String>, Mpi4pyError> {
    let mut modules = Vec::new();
    for entry in fs::read_dir(tests).map_err(Mpi4pyError::file(tests))? {
        let name = entry.map_err(Mpi4pyError::file(tests))?.file_name();
        let name = name.to_string_lossy();
        if let Some(module) = name.strip_suffix(".py").filter(|m| m.starts_with("test_")) {
            modules.push(module.to_owned());
        }
    }
    modules.sort_unstable();
    Ok(modules)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_on_a_duplicate_is_left_out_once_and_expected_otherwise() {
        let whole = Options::quick();
        let once = Options {
            once: true,
            ..Options::quick()
        };
        let [repeated, first] =
            ["WorldDup", "World"].map(|on| format!("test_p2p_buf.TestP2PBuf{on}.testSendrecv"));
        assert!(whole.wants(&repeated, 2) && whole.wants(&first, 2));
        assert!(!once.wants(&repeated, 2) && once.wants(&first, 2));
    }
}
