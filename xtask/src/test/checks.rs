//! The checks of the sources that are no tests: form, documentation, the oldest compiler, undefined behaviour.
//!
//! All but the form compile all packages once more, for which the short form has no time: clippy needs 80 s of processor time, the check by the oldest
//! compiler 100 s, and rustdoc, which shares its metadata, 20 s.
//! The oldest compiler and rustdoc on the packages of the product alone take 83 s and lengthened the whole command by a minute, to 952 s.
//! `clippy-driver` as the compiler of the tests costs 120 s, because `cargo xtask` itself is compiled by rustc before.
//! These checks are compiled in target folders of their own, so that they do not wait for cargo's lock on the folder of the tests.

use std::process::Command;

use super::suites::Suite;
use crate::packages;
use crate::process::{self, ProcessError};
use crate::ui;
use crate::workspace;

/// The oldest compiler that builds what is installed: `rust-version` of the workspace.
const OLDEST: &str = env!("CARGO_PKG_RUST_VERSION");

/// Tests of mpi-base that call no function of the operating system beyond Miri's, as filters of libtest.
const PURE: &[&str] = &["arena::", "bitmap::", "copy::", "ranges::", "split_copy::"];

/// The components that the checks need of the compiler in use.
const COMPONENTS: &[&str] = &["rustfmt", "clippy"];

/// The toolchain of Miri, which only nightly ones have, and its components.
const NIGHTLY: &str = "nightly";
const OF_NIGHTLY: &[&str] = &["miri", "rust-src"];

/// Returns the checks, after installing the compilers that are missing unless `offline`; what cannot be had is reported in one sentence and left out.
pub fn suites(long: bool, offline: bool) -> Vec<Suite> {
    let mut suites = vec![form()];
    if !long {
        return suites;
    }
    let has_oldest = answers(&[OLDEST, "cargo", "--version"]);
    match has_oldest || (!offline && install(OLDEST, &[])) {
        true => suites.extend([oldest(), documentation(true)]),
        false => {
            ui::say(&format!(
                "      Rust {OLDEST} is not installed, so the oldest stated compiler is not tried; install it by: rustup toolchain install {OLDEST}"
            ));
            suites.push(documentation(false));
        }
    }
    suites.push(lints());
    let has_miri = answers(&[NIGHTLY, "cargo", "miri", "--version"]);
    match has_miri || (!offline && install(NIGHTLY, OF_NIGHTLY)) {
        true => suites.push(undefined_behaviour()),
        false => ui::say(
            "      Miri is not installed, so mpi-base is not searched for undefined behaviour; install it by: rustup toolchain install nightly --component miri,rust-src",
        ),
    }
    suites
}

/// Adds rustfmt and clippy to the compiler in use if it lacks them.
pub fn add_components() -> Result<(), ProcessError> {
    let missing = COMPONENTS.iter().filter(|name| !is_component(name));
    let missing: Vec<_> = missing.collect();
    if missing.is_empty() {
        return Ok(());
    }
    ui::say(&format!("      adding {missing:?} to the compiler"));
    process::run(rustup(&["component", "add"]).args(missing))
}

/// rustfmt leaves every file as it is.
fn form() -> Suite {
    let command = super::cargo_command(&["fmt", "--all", "--check"]);
    Suite::of("cargo fmt --check", &command)
}

/// clippy has no objection to any target, benchmarks included.
fn lints() -> Suite {
    let task = ["clippy", "--workspace", "--all-targets", "--quiet"];
    let mut command = super::cargo_command(&task);
    in_folder(&mut command, "lints");
    command.args(["--", "-D", "warnings"]);
    Suite::of("cargo clippy", &command)
}

/// All links in the documentation lead somewhere. The oldest compiler writes it where it is there: that shares the metadata of [`oldest`], and those of
/// all dependencies are most of the work.
fn documentation(by_oldest: bool) -> Suite {
    let task = ["doc", "--workspace", "--no-deps", "--quiet", "--locked"];
    let mut command = match by_oldest {
        true => by(OLDEST, &task, "oldest"),
        false => {
            let mut command = super::cargo_command(&task);
            in_folder(&mut command, "documentation");
            command
        }
    };
    command.env("RUSTDOCFLAGS", "-D warnings");
    Suite::of("cargo doc", &command)
}

/// The oldest compiler accepts all packages; tests may need a newer one.
fn oldest() -> Suite {
    let task = ["check", "--workspace", "--quiet", "--locked"];
    let command = by(OLDEST, &task, "oldest");
    Suite::of(&format!("cargo check by Rust {OLDEST}"), &command)
}

/// Miri finds no undefined behaviour in the pure parts of mpi-base.
fn undefined_behaviour() -> Suite {
    let mut command = by(NIGHTLY, &["miri", "test", "--quiet"], "miri");
    command.args(["--package", "mpi-base", "--lib", "--"]);
    command.args(PURE);
    // proptest asks for the current folder, and Miri runs a hundredth as fast as the processor.
    command.env("MIRIFLAGS", "-Zmiri-disable-isolation");
    command.env("PROPTEST_CASES", "4");
    Suite::of("mpi-base under Miri", &command)
}

/// Returns a command of another toolchain's cargo, with a target folder for checks.
fn by(toolchain: &str, task: &[&str], folder: &str) -> Command {
    let mut command = rustup(&["run", toolchain, "cargo"]);
    command.current_dir(workspace::root()).args(task);
    in_folder(&mut command, folder);
    command
}

fn in_folder(command: &mut Command, folder: &str) {
    let folder = workspace::target().join("checks").join(folder);
    command.arg("--target-dir").arg(folder);
}

fn rustup(words: &[&str]) -> Command {
    let mut command = Command::new("rustup");
    command.args(words);
    command
}

/// Returns true if a command of `rustup run` succeeds; it installs nothing.
fn answers(words: &[&str]) -> bool {
    let mut command = rustup(&["run"]);
    let output = command.args(words).output();
    packages::on_path("rustup") && output.is_ok_and(|output| output.status.success())
}

/// Returns true if cargo of the toolchain in use has a component.
fn is_component(name: &str) -> bool {
    let task = if name == "rustfmt" { "fmt" } else { name };
    let output = super::cargo_command(&[task, "--version"]).output();
    output.is_ok_and(|output| output.status.success())
}

/// Installs a toolchain with components. Returns true if it is there afterwards.
fn install(toolchain: &str, components: &[&str]) -> bool {
    if !packages::on_path("rustup") {
        return false;
    }
    ui::say(&format!("      installing Rust {toolchain}"));
    let mut command = rustup(&["--quiet", "toolchain", "install", toolchain]);
    command.args(["--profile", "minimal", "--no-self-update"]);
    for component in components {
        command.args(["--component", component]);
    }
    process::run(&mut command).is_ok()
}
