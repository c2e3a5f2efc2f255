//! `cargo xtask test`: installs what the tests need, then runs all of them.

use std::ffi::OsStr;
use std::fmt;
use std::process::Command;

use clap::Args;

use crate::deny::{self, DenyError};
use crate::firmware;
use crate::mpi4py::{self, Mpi4pyError};
use crate::packages::{self, PackagesError};
use crate::process::{self, ProcessError};
use crate::test_installation::{BuildError, build_mpi4py};
use crate::ui::{self, Steps};
use crate::venv::{self, VenvError};
use crate::workspace;

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
    /// cargo says that a test or a memory model failed; the names are above, in its own output.
    Failed(ProcessError),
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
        }
    }
}

impl std::error::Error for TestError {}

/// Everything, in the order in which failures are cheapest.
pub fn run(options: &Options) -> Result<(), TestError> {
    let mut steps = Steps::new(if options.offline { 2 } else { 11 });
    if !options.offline {
        steps
            .step("looking for compilers and tools", packages::ensure)
            .map_err(TestError::Packages)?;
        steps
            .step(
                "fetching MPICH, the peer for both directions of the ABI",
                || venv::MPICH.ensure(&[]),
            )
            .map_err(TestError::Venv)?;
        steps
            .step("fetching Open MPI, whose launchers speak PMIx", || {
                venv::OPEN_MPI.ensure(&[])
            })
            .map_err(TestError::Venv)?;
        steps
            .step("fetching the tools for ECP5 and Gowin", || {
                venv::NEXTPNR.ensure(&[])
            })
            .map_err(TestError::Venv)?;
        steps.step(
            "adding the Cortex-M0 to what rustc can build for",
            add_cortex_m0,
        )?;
        steps
            .step("building mpi4py from source with our mpicc", || {
                build_mpi4py(venv::MPI4PY)
            })
            .map_err(TestError::Build)?;
    }
    if !options.offline {
        steps
            .step("checking dependencies against deny.toml", deny::check)
            .map_err(TestError::Dependencies)?;
    }
    if !options.offline {
        steps.step("running the barrier's suite in Python under Icarus", cocotb)?;
    }
    steps.step("running the tests of the workspace", || {
        let path = venv::NEXTPNR.search_path();
        cargo(
            &["test", "--workspace", "--no-fail-fast"],
            &[("PATH", path.as_os_str())],
        )
    })?;
    if !options.offline {
        steps
            .step("running the quick part of mpi4py's own tests", || {
                mpi4py::check(&mpi4py::Options::quick())
            })
            .map_err(TestError::Mpi4py)?;
    }
    steps.step("checking the memory models with loom", loom)?;
    println!("All tests passed in {:.0} s.", steps.seconds());
    Ok(())
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
    cargo(
        &[
            "test",
            "-p",
            "mpi-base",
            "--release",
            "--lib",
            "--target-dir",
            &folder,
            "loom",
        ],
        &flags,
    )
}

fn cargo(arguments: &[&str], environment: &[(&str, &OsStr)]) -> Result<(), TestError> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .current_dir(workspace::root())
        .args(arguments)
        .envs(environment.iter().copied());
    process::run(&mut command).map_err(TestError::Failed)
}
