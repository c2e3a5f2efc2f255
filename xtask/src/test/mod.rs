//! `cargo xtask test`: installs the requirements, checks the sources and runs all tests.

mod checks;
mod failures;
mod suites;
mod usage;

use std::fmt;
use std::path::Path;
use std::process::Command;
use std::thread;

use clap::Args;

use crate::deny::{self, DenyError};
use crate::firmware;
use crate::install;
use crate::packages::{self, Missing, PackagesError};
use crate::process::ProcessError;
use crate::test_installation::{self, BuildError, build_mpi4py};
use crate::ui::{self, Steps};
use crate::venv::{self, VenvError};
use crate::workspace;
pub use suites::NEED_MORE;
use suites::{Running, Suite, Suites};

/// Environment variable: if it is set, tests with a missing requirement fail instead of being skipped.
pub const NO_SKIPS: &str = "PORTCULLIS_TEST_NO_SKIPS";

/// The scope of the tests.
#[derive(Clone, Copy, Debug, Args)]
pub struct Options {
    /// Run also the tests that are marked as long (proofs at full width, packages in a clean root, more ranks, memory checkers), Miri, clippy, rustdoc, and the oldest compiler
    #[arg(long)]
    long: bool,

    /// Install nothing; tests print the names of missing requirements and are skipped
    #[arg(long)]
    offline: bool,
}

/// The reason why the tests did not pass.
#[derive(Debug)]
pub enum TestError {
    /// Required Debian packages are missing and could not be installed.
    Packages(PackagesError),
    /// The environment of MPICH, Open MPI or mpi4py could not be created;
    /// `--offline` does not need these environments.
    Venv(VenvError),
    /// mpi4py could not be built with Portcullis's `mpicc`.
    Build(BuildError),
    /// cargo-deny could not be installed, or rejects a dependency; the output above has the reason.
    Dependencies(DenyError),
    /// rustfmt or clippy could not be added to the toolchain; `--offline` does not add them.
    Compilers(ProcessError),
    /// A test could not be built, or a loom model failed; cargo's output above has the names.
    Failed(ProcessError),
    /// cargo built all packages but reported no test program.
    NoSuites,
    /// Test programs failed: one sentence per program, with its failed tests; the output is printed above.
    Suites(Vec<String>),
}

impl fmt::Display for TestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packages(error) => error.fmt(f),
            Self::Venv(error) => error.fmt(f),
            Self::Build(error) => error.fmt(f),
            Self::Dependencies(error) => error.fmt(f),
            Self::Compilers(error) => {
                write!(f, "rustup cannot add what the checks of the sources need: {error}")
            }
            Self::Failed(error) => error.fmt(f),
            Self::NoSuites => f.write_str(
                "cargo test --workspace --no-run has reported no test program, so nothing was tested",
            ),
            Self::Suites(sentences) => write!(
                f,
                "{} of the test programs failed; the rest of what they printed is above\n{}",
                sentences.len(),
                sentences.join("\n")
            ),
        }
    }
}

impl std::error::Error for TestError {}

/// Runs all checks and tests; the cheapest steps are first.
pub fn run(options: &Options) -> Result<(), TestError> {
    let mut steps = Steps::new(if options.offline { 5 } else { 6 });
    let mut missing = None;
    if !options.offline {
        let found = steps.step(
            "looking for compilers and tools",
            packages::ensure_compilers,
        );
        missing = Some(found.map_err(TestError::Packages)?);
        checks::add_components().map_err(TestError::Compilers)?;
    }
    let own = std::env::current_exe().unwrap_or_else(|_| "xtask".into());
    let failed = thread::scope(|scope| {
        // The checks run concurrently with all steps, because the build leaves a core idle
        // while it compiles a package on which all others depend.
        let checked = scope.spawn(|| check(options));
        let mut failed = build_and_run(options, &own, missing, &mut steps)?;
        failed.extend(steps.step("waiting for the checks of the sources", || joined(checked))?);
        Ok::<_, TestError>(failed)
    })?;
    if !failed.is_empty() {
        return Err(TestError::Suites(failed));
    }
    println!("All tests passed in {:.0} s.", steps.seconds());
    Ok(())
}

/// Checks the dependencies against `deny.toml`, installs missing toolchains and checks the sources.
/// Returns a sentence for each failure.
fn check(options: &Options) -> Result<Vec<String>, TestError> {
    if !options.offline {
        deny::check().map_err(TestError::Dependencies)?;
    }
    let checks = checks::suites(options.long, options.offline);
    let how = Running {
        environment: &[],
        long: options.long,
        limit: suites::LIMIT,
    };
    Ok(suites::at_low_priority(&checks, how))
}

fn build_and_run(
    options: &Options,
    own: &Path,
    missing: Option<Missing>,
    steps: &mut Steps,
) -> Result<Vec<String>, TestError> {
    thread::scope(|scope| {
        // Fetching mostly waits for the network, so it runs concurrently with the build.
        let fetched = scope.spawn(|| missing.map_or(Ok(()), fetch));
        steps
            .step("installing Portcullis for the tests", || {
                let prefix = test_installation::installation();
                install::install(&prefix, &test_installation::CONTENTS)
            })
            .map_err(|error| TestError::Build(BuildError::Install(error)))?;
        joined(fetched)
    })?;
    let mut suites = thread::scope(|scope| {
        // Compiling mpi4py needs one thread; the cargo build sometimes leaves a core idle.
        let mpi4py = scope.spawn(|| match options.offline {
            true => Ok(()),
            false => build_mpi4py(venv::MPI4PY),
        });
        steps.step("building the tests, and mpi4py with our mpicc", || {
            let suites = Suites::build(options.long).map_err(TestError::Failed);
            joined(mpi4py).map_err(TestError::Build).and(suites)
        })
    })?;
    if suites.is_empty() {
        return Err(TestError::NoSuites);
    }
    suites.add_to_background(loom(options.long));
    if !options.offline {
        suites.add_to_background(cocotb());
        suites.add_to_background(mpi4py(own, options.long));
    }
    run_suites(&suites, options, steps)
}

/// Runs the three lanes of test programs concurrently; returns a sentence for each failure.
fn run_suites(
    suites: &Suites,
    options: &Options,
    steps: &mut Steps,
) -> Result<Vec<String>, TestError> {
    let path = venv::NEXTPNR.search_path();
    let prefix = test_installation::installation();
    let environment = [
        ("PATH", path.as_os_str()),
        // This variable makes the test programs use the installation made from the current sources.
        (test_installation::MADE, prefix.as_os_str()),
    ];
    let how = Running {
        environment: &environment,
        long: options.long,
        limit: suites::LIMIT,
    };
    thread::scope(|scope| {
        let others = [
            scope.spawn(|| suites.background(how)),
            scope.spawn(|| suites.beside(how)),
        ];
        let mut failed = steps.step("running the tests", || {
            Ok::<_, TestError>(suites.foreground(how))
        })?;
        let waited = steps.step(
            "waiting for proofs, tools and what runs at a low priority",
            || Ok::<_, TestError>(others.map(joined).concat()),
        )?;
        failed.extend(waited);
        Ok(failed)
    })
}

/// Returns the result of a thread, or resumes its panic.
fn joined<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Fetches what the tests need from the network; it is kept for later runs.
fn fetch(missing: Missing) -> Result<(), TestError> {
    missing.install().map_err(TestError::Packages)?;
    // MPICH and Open MPI: tests that combine their libraries and launchers with Portcullis.
    // nextpnr and cocotb: tests of the RTL.
    for environment in [venv::MPICH, venv::OPEN_MPI, venv::NEXTPNR, venv::COCOTB] {
        environment.ensure(&[]).map_err(TestError::Venv)?;
    }
    // Some Rust mirrors lack the target; the microcontroller tests are then skipped.
    if let Err(error) = firmware::add_target() {
        ui::say(&format!("      {error}"));
    }
    Ok(())
}

/// Returns the barrier's Python test suite (cocotb), which shares no code with the crates.
fn cocotb() -> Suite {
    let mut command = Command::new(venv::COCOTB.bin("python"));
    let suite = workspace::root().join("hdl/shared/dv/cocotb/run.py");
    command.arg(suite).arg("icarus");
    Suite::of("the barrier's suite in Python under Icarus", &command)
}

/// Returns mpi4py's own tests without the slowest modules, and unless `long` without repetitions on duplicated communicators and with other kinds of Python buffers.
fn mpi4py(own: &Path, long: bool) -> Suite {
    // One process takes 28 s of CPU time, and three take more;
    // two processes also test communicators of one process.
    let ranks = if long { "1,2,3" } else { "2" };
    // Runs this program directly: through cargo it would wait for other builds.
    let mut command = Command::new(own);
    command.args(["mpi4py", "--quick", "--np", ranks]);
    command.args((!long).then_some("--once"));
    Suite::of("the quick part of mpi4py's own tests", &command)
}

/// Returns the loom models of mpi-base, which cover all interleavings with a bounded number of
/// preemptions. They have their own target folder, because loom needs another build configuration.
fn loom(long: bool) -> Suite {
    let mut command = cargo_command(&["test", "-p", "mpi-base", "--lib"]);
    command
        .args(["--profile", "models"])
        .arg("--target-dir")
        .arg(workspace::target().join("loom"))
        .arg("loom")
        .env("RUSTFLAGS", "--cfg loom")
        .env("LOOM_MAX_PREEMPTIONS", if long { "3" } else { "2" });
    Suite::of("loom's models of mpi-base", &command)
}

/// Returns a command of the cargo that started this process; its folder is the workspace.
fn cargo_command(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(workspace::root()).args(arguments);
    command
}
