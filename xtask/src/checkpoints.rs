//! `cargo xtask checkpoints`: stops and kills jobs with checkpoints many times, and restarts them.
//!
//! The command runs the long tests of `tests/tests/checkpoints.rs` (the component `self`) and
//! `tests/tests/images.rs` (`criu`), one after another. Each restart must give the result of an undisturbed job.
//! The tests of images need CRIU 4.2 in `PATH` and root; the tests on several hosts need root.

use std::fmt;
use std::process::{Command, ExitStatus};

use clap::Args;

use crate::test_installation::{self, BuildError, build_mpi4py};
use crate::ui::Steps;
use crate::venv;
use crate::workspace;

/// The tests to run, and how often they stop or kill a job.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Stops at random moments for each job [default: 100]
    #[arg(long, value_name = "N")]
    stops: Option<u32>,
    /// Kills for each test of kills [default: 100 or 200, as the test]
    #[arg(long, value_name = "N")]
    kills: Option<u32>,
    /// Only one component of checkpoints
    #[arg(long, value_name = "self|criu", value_parser = ["self", "criu"])]
    component: Option<String>,
    /// Only tests whose names contain this
    #[arg(long, value_name = "PART")]
    only: Option<String>,
}

/// The reason why the tests were not run or have failed.
#[derive(Debug)]
pub enum CheckpointsError {
    /// Portcullis could not be installed, or mpi4py not be built.
    Build(BuildError),
    /// cargo could not be started.
    Cargo(std::io::Error),
    /// A test has failed; its output is above.
    Failed(ExitStatus),
}

impl fmt::Display for CheckpointsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Build(error) => error.fmt(f),
            Self::Cargo(error) => write!(f, "cargo cannot be started: {error}"),
            Self::Failed(status) => write!(
                f,
                "the tests of checkpoints have ended with {status}; the output above has the reason"
            ),
        }
    }
}

impl std::error::Error for CheckpointsError {}

/// Runs `cargo xtask checkpoints`.
pub fn run(options: &Options) -> Result<(), CheckpointsError> {
    let mut steps = Steps::new(3);
    steps
        .step("installing Portcullis for the tests", || {
            test_installation::ensure().map_err(BuildError::Install)
        })
        .map_err(CheckpointsError::Build)?;
    steps
        .step("building mpi4py with our mpicc", || {
            build_mpi4py(venv::MPI4PY)
        })
        .map_err(CheckpointsError::Build)?;
    let mut command = command(options);
    let status = steps.step("stopping and restarting jobs", || command.status());
    let status = status.map_err(CheckpointsError::Cargo)?;
    match status.success() {
        true => Ok(()),
        false => Err(CheckpointsError::Failed(status)),
    }
}

fn command(options: &Options) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(workspace::root());
    command.args(["test", "--workspace"]);
    let programs = [("self", "checkpoints"), ("criu", "images")];
    for (component, program) in programs {
        let wanted = options.component.as_deref();
        if wanted.is_none_or(|wanted| wanted == component) {
            command.args(["--test", program]);
        }
    }
    command.args(["--", "--ignored", "--test-threads", "1"]);
    command.args(options.only.iter());
    let counts = [
        ("CHECKPOINT_STOPS", options.stops),
        ("CHECKPOINT_KILLS", options.kills),
    ];
    for (name, count) in counts {
        command.envs(count.map(|count| (name, count.to_string())));
    }
    command.env(test_installation::MADE, test_installation::installation());
    command
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;

    #[test]
    fn the_options_choose_the_test_programs_and_their_counts() {
        let options = Options {
            stops: Some(7),
            kills: None,
            component: Some("criu".into()),
            only: Some("mpi4py".into()),
        };
        let command = command(&options);
        let arguments: Vec<_> = command.get_args().collect();
        let expected = "test --workspace --test images -- --ignored --test-threads 1 mpi4py";
        assert_eq!(arguments, expected.split(' ').collect::<Vec<_>>());
        let counts: Vec<_> = command
            .get_envs()
            .filter(|(name, _)| name.to_string_lossy().starts_with("CHECKPOINT_"))
            .collect();
        let stops = (OsStr::new("CHECKPOINT_STOPS"), Some(OsStr::new("7")));
        assert_eq!(counts, [stops]);
    }
}
