//! What a dependency may be, checked by cargo-deny against `deny.toml`: licences, sources, wildcards.
//!
//! cargo-deny comes from the registry and is built once into the target folder.
//! Advisories are left out: their database is a repository of its own, which a build machine need not reach; `cargo deny check advisories` reads it.

use std::path::PathBuf;
use std::process::Command;

use crate::process::{self, ProcessError};
use crate::workspace;

/// The version that the tests use.
const VERSION: &str = "0.20.2";

/// The checks that need nothing but the lock file and the packages themselves.
const CHECKS: &[&str] = &["licenses", "bans", "sources"];

/// Builds cargo-deny if it is not there, and runs the checks; what they object to goes to the terminal.
pub fn check() -> Result<(), ProcessError> {
    let tool = tool()?;
    // It reads every package of the lock file, those for other machines too, which no build here fetches.
    let mut fetch = cargo();
    fetch
        .current_dir(workspace::root())
        .args(["fetch", "--locked", "--quiet"]);
    process::run(&mut fetch)?;
    let mut command = Command::new(tool);
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
    process::run(&mut command)
}

/// The program; a folder for each version, so that a newer one is not taken for the one that was asked for.
fn tool() -> Result<PathBuf, ProcessError> {
    let root = workspace::target()
        .join("tools")
        .join(format!("cargo-deny-{VERSION}"));
    let tool = root.join("bin/cargo-deny");
    if !tool.is_file() {
        let mut install = cargo();
        install
            .args([
                "install",
                "--quiet",
                "--locked",
                // It has little to compute, and is built sooner so.
                "--debug",
                "cargo-deny",
                "--version",
                VERSION,
            ])
            // Its own git client only fetches advisories.
            .arg("--no-default-features")
            .arg("--root")
            .arg(&root)
            .arg("--target-dir")
            .arg(root.join("build"));
        process::run(&mut install)?;
        // Nothing but the program is needed of the 300 MB; where they stay, nothing is wrong.
        let _ = std::fs::remove_dir_all(root.join("build"));
    }
    Ok(tool)
}

fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}
