//! `cargo xtask test`: installs what the tests need, then runs all of them.

mod suites;

use std::ffi::OsStr;
use std::fmt;
use std::process::Command;
use std::thread;

use clap::Args;

use crate::deny::{self, DenyError};
use crate::firmware;
use crate::install;
use crate::mpi4py::{self, Mpi4pyError};
use crate::packages::{self, PackagesError};
use crate::process::{self, ProcessError};
use crate::test_installation::{self, BuildError, build_mpi4py};
use crate::ui::{self, Steps};
use crate::venv::{self, VenvError};
use crate::workspace;
use suites::{Environment, Suites};

/// If this is set in the environment, tests fail that would say what they need and be skipped.
pub const NO_SKIPS: &str = "PORTCULLIS_TEST_NO_SKIPS";

/// What is left out.
#[derive(Clone, Copy, Debug, Args)]
pub struct Options {
    /// Use what is there; tests that need more say so and are skipped
    #[arg(long)]
    offline: bool,
}

/// Why the tests did not all pass.
#[derive(Debug)]
pub enum TestError {
    /// What the tests need of Debian is not there and could not be installed.
    Packages(PackagesError),
    /// The environment of MPICH, Open MPI or mpi4py could not be made; `--offline` does without.
    Venv(VenvError),
    /// mpi4py could not be built with our `mpicc`.
    Build(BuildError),
    /// The quick part of mpi4py's own tests did not pass.
    Mpi4py(Mpi4pyError),
    /// cargo-deny could not be installed, or a dependency is not what `deny.toml` allows; what it objects to is above.
    Dependencies(DenyError),
    /// cargo says that a test could not be built, or that a memory model failed; the names are above, in its own output.
    Failed(ProcessError),
    /// cargo has built everything and told of no test program.
    NoSuites,
    /// Test programs failed; each has a sentence, and what it printed is above.
    Suites(Vec<String>),
}

impl fmt::Display for TestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packages(error) => error.fmt(f),
            Self::Venv(error) => error.fmt(f),
            Self::Build(error) => error.fmt(f),
            Self::Mpi4py(error) => error.fmt(f),
            Self::Dependencies(error) => error.fmt(f),
            Self::Failed(error) => error.fmt(f),
            Self::NoSuites => f.write_str(
                "cargo test --workspace --no-run has told of no test program, so nothing was tested",
            ),
            Self::Suites(sentences) => write!(
                f,
                "test programs, whose own output is above:\n  {}",
                sentences.join("\n  ")
            ),
        }
    }
}

impl std::error::Error for TestError {}

/// Everything, in the order in which failures are cheapest.
pub fn run(options: &Options) -> Result<(), TestError> {
    let mut steps = Steps::new(if options.offline { 5 } else { 13 });
    if !options.offline {
        fetch(&mut steps)?;
    }
    steps
        .step("installing Portcullis for the tests", || {
            let prefix = test_installation::installation();
            install::install(&prefix, &test_installation::CONTENTS)
        })
        .map_err(|error| TestError::Build(BuildError::Install(error)))?;
    let suites = thread::scope(|scope| {
        // One thread compiles it, and cargo leaves a core idle now and then.
        let mpi4py = scope.spawn(|| match options.offline {
            true => Ok(()),
            false => build_mpi4py(venv::MPI4PY),
        });
        steps.step("building the tests, and mpi4py with our mpicc", || {
            let suites = Suites::build().map_err(TestError::Failed);
            joined(mpi4py).map_err(TestError::Build).and(suites)
        })
    })?;
    if suites.is_empty() {
        return Err(TestError::NoSuites);
    }
    let path = venv::NEXTPNR.search_path();
    let environment = [("PATH", path.as_os_str())];
    let (mut failed, rest) = thread::scope(|scope| {
        let background = scope.spawn(|| suites.background(&environment));
        let mut failed = Vec::new();
        let mut rest = || {
            failed = steps.step("running the tests of the workspace", || {
                Ok::<_, TestError>(suites.foreground(&environment))
            })?;
            if !options.offline {
                steps
                    .step("running the quick part of mpi4py's own tests", || {
                        mpi4py::check(&mpi4py::Options::quick())
                    })
                    .map_err(TestError::Mpi4py)?;
            }
            steps.step("checking the memory models with loom", loom)
        };
        let rest = rest();
        let waited = steps.step("waiting for proofs, tools and installations", || {
            Ok::<_, TestError>(joined(background))
        });
        failed.extend(waited.into_iter().flatten());
        (failed, rest)
    });
    if failed.is_empty() {
        rest?;
    } else {
        failed.extend(rest.err().map(|error| error.to_string()));
        return Err(TestError::Suites(failed));
    }
    println!("All tests passed in {:.0} s.", steps.seconds());
    Ok(())
}

/// What a thread of ours gives; its panic is ours.
fn joined<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// What the tests need of elsewhere, and what needs no build of ours.
fn fetch(steps: &mut Steps) -> Result<(), TestError> {
    steps
        .step("looking for compilers and tools", packages::ensure)
        .map_err(TestError::Packages)?;
    let environments = [
        (
            "fetching MPICH, the peer for both directions of the ABI",
            venv::MPICH,
        ),
        (
            "fetching Open MPI, whose launchers speak PMIx",
            venv::OPEN_MPI,
        ),
        ("fetching the tools for ECP5 and Gowin", venv::NEXTPNR),
    ];
    for (what, environment) in environments {
        steps
            .step(what, || environment.ensure(&[]))
            .map_err(TestError::Venv)?;
    }
    steps.step(
        "adding the Cortex-M0 to what rustc can build for",
        add_cortex_m0,
    )?;
    steps
        .step("checking dependencies against deny.toml", deny::check)
        .map_err(TestError::Dependencies)?;
    steps.step("running the barrier's suite in Python under Icarus", cocotb)
}

/// Without the target the tests of the microcontroller say so and are skipped: not every mirror of the compiler has it.
fn add_cortex_m0() -> Result<(), TestError> {
    if let Err(error) = firmware::add_target() {
        ui::say(&format!("      {error}"));
    }
    Ok(())
}

/// The suite that shares nothing with the crates.
fn cocotb() -> Result<(), TestError> {
    venv::COCOTB.ensure(&[]).map_err(TestError::Venv)?;
    let mut command = Command::new(venv::COCOTB.bin("python"));
    let suite = workspace::root().join("hdl/shared/dv/cocotb/run.py");
    process::run(command.arg(suite).arg("icarus")).map_err(TestError::Failed)
}

/// Every interleaving of the small models in mpi-base, in a target folder of its own because all is built with another configuration.
fn loom() -> Result<(), TestError> {
    let flags = [("RUSTFLAGS", OsStr::new("--cfg loom"))];
    let folder = workspace::target().join("loom");
    let folder = folder.to_string_lossy();
    run_cargo(
        &[
            "test",
            "-p",
            "mpi-base",
            // Optimised, without the link-time optimisation that a few seconds of models do not repay.
            "--profile",
            "demo",
            "--lib",
            "--target-dir",
            &folder,
            "loom",
        ],
        &flags,
    )
}

/// cargo in the workspace, the one that started us.
fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(workspace::root()).args(arguments);
    command
}

fn run_cargo(arguments: &[&str], environment: Environment<'_>) -> Result<(), TestError> {
    let mut command = cargo(arguments);
    command.envs(environment.iter().copied());
    process::run(&mut command).map_err(TestError::Failed)
}
