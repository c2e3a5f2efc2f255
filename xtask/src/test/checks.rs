//! Checks of the sources: format, lints, documentation, oldest supported compiler, undefined behaviour.
//!
//! All checks except that of the format compile packages again, and the default run has no time for them.
//! With `--long` the run adds Miri on mpi-base (45 s of CPU time), clippy (80 s), a check with the
//! oldest compiler (100 s), and rustdoc, which shares the metadata of that check (20 s).
//! Running clippy of the oldest compiler instead of its check is not cheaper: from an empty target folder, without the tests, it took 317 s on a loaded machine,
//! and rustdoc cannot use the metadata that clippy writes for the workspace's packages.
//! Checking and documenting only the product's packages with the oldest compiler in the default run
//! takes 83 s, but it lengthened `cargo xtask test` by a minute, to 952 s, and was rejected.
//! If `clippy-driver` compiles the tests instead of rustc, they take 120 s longer,
//! because cargo cannot reuse what rustc compiled for `cargo xtask` itself.
//! Each check has its own target folder,
//! so no check waits for cargo's lock of the tests' folder.

use std::process::Command;

use super::suites::Suite;
use crate::packages;
use crate::process::{self, ProcessError};
use crate::ui;
use crate::workspace;

const OLDEST: &str = env!("CARGO_PKG_RUST_VERSION");

/// libtest filters for those tests of mpi-base that only call functions supported by Miri.
const PURE: &[&str] = &["arena::", "bitmap::", "copy::", "ranges::", "split_copy::"];

const COMPONENTS: &[&str] = &["rustfmt", "clippy"];

/// The toolchain with Miri, which only nightly toolchains include; `OF_NIGHTLY` lists the needed components.
const NIGHTLY: &str = "nightly";
const OF_NIGHTLY: &[&str] = &["miri", "rust-src"];

/// Which of the optional toolchains are installed.
#[derive(Clone, Copy)]
struct Toolchains {
    oldest: bool,
    miri: bool,
}

/// Returns the checks. Missing toolchains are installed unless `offline`;
/// a check whose toolchain is missing is reported by one sentence and omitted.
pub fn suites(long: bool, offline: bool) -> Vec<Suite> {
    let has = |words: &[&str], toolchain, components| {
        answers(words) || (!offline && install(toolchain, components))
    };
    let installed = Toolchains {
        oldest: long && has(&[OLDEST, "cargo", "--version"], OLDEST, &[]),
        miri: long
            && has(
                &[NIGHTLY, "cargo", "miri", "--version"],
                NIGHTLY,
                OF_NIGHTLY,
            ),
    };
    if long && !installed.oldest {
        ui::say(&format!(
            "      Rust {OLDEST} is not installed, so the oldest stated compiler is not tried; install it by: rustup toolchain install {OLDEST}"
        ));
    }
    if long && !installed.miri {
        ui::say(
            "      Miri is not installed, so mpi-base is not searched for undefined behaviour; install it by: rustup toolchain install nightly --component miri,rust-src",
        );
    }
    with(installed, long)
}

/// Returns the checks that these toolchains permit.
fn with(installed: Toolchains, long: bool) -> Vec<Suite> {
    let mut suites = vec![form()];
    if !long {
        return suites;
    }
    if installed.miri {
        suites.push(undefined_behaviour());
    }
    if installed.oldest {
        suites.push(oldest());
    }
    suites.extend([documentation(installed.oldest), lints()]);
    suites
}

/// Adds rustfmt and clippy to the current toolchain, if they are missing.
pub fn add_components() -> Result<(), ProcessError> {
    let missing = COMPONENTS.iter().filter(|name| !is_component(name));
    let missing: Vec<_> = missing.collect();
    if missing.is_empty() {
        return Ok(());
    }
    ui::say(&format!("      adding {missing:?} to the compiler"));
    process::run(rustup(&["component", "add"]).args(missing))
}

/// Returns the check that all files have the format of rustfmt.
fn form() -> Suite {
    let command = super::cargo_command(&["fmt", "--all", "--check"]);
    Suite::of("cargo fmt --check", &command)
}

/// Returns the check that clippy has no complaint about any target, including tests and benchmarks.
fn lints() -> Suite {
    let task = ["clippy", "--workspace", "--all-targets", "--quiet"];
    let mut command = super::cargo_command(&task);
    in_folder(&mut command, "lints");
    command.args(["--", "-D", "warnings"]);
    Suite::of("cargo clippy", &command)
}

/// Returns the check that all links in the documentation are valid.
/// If the oldest compiler is installed, its rustdoc is used: it shares the metadata of the
/// dependencies with [`oldest`], and producing these is most of the work.
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

/// Returns the check that the oldest compiler accepts all packages; tests may need a newer one.
fn oldest() -> Suite {
    let task = ["check", "--workspace", "--quiet", "--locked"];
    let command = by(OLDEST, &task, "oldest");
    Suite::of(&format!("cargo check by Rust {OLDEST}"), &command)
}

/// Returns the check by Miri for undefined behaviour in pure parts of mpi-base.
fn undefined_behaviour() -> Suite {
    let mut command = by(NIGHTLY, &["miri", "test", "--quiet"], "miri");
    command.args(["--package", "mpi-base", "--lib", "--"]);
    command.args(PURE);
    // proptest reads the current folder, which Miri's isolation forbids.
    command.env("MIRIFLAGS", "-Zmiri-disable-isolation");
    command.env("PROPTEST_CASES", "2");
    // Miri ignores the optimisation level and prints a warning if there is one.
    command.env("CARGO_PROFILE_DEV_OPT_LEVEL", "0");
    Suite::of("mpi-base under Miri", &command)
}

/// Returns a command of the toolchain's cargo, with a target folder of its own.
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

/// Returns true if `rustup run` with these words succeeds; it installs no toolchain.
fn answers(words: &[&str]) -> bool {
    let mut command = rustup(&["run"]);
    let output = command.args(words).output();
    packages::on_path("rustup") && output.is_ok_and(|output| output.status.success())
}

fn is_component(name: &str) -> bool {
    let task = if name == "rustfmt" { "fmt" } else { name };
    let output = super::cargo_command(&[task, "--version"]).output();
    output.is_ok_and(|output| output.status.success())
}

/// Installs a toolchain with components; returns true if it is then installed.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_form_has_the_form_and_the_long_form_each_check() {
        let checks = |installed, long| {
            let suites = with(installed, long).into_iter();
            suites.map(|suite| suite.to_string()).collect::<Vec<_>>()
        };
        let all = Toolchains {
            oldest: true,
            miri: true,
        };
        let none = Toolchains {
            oldest: false,
            miri: false,
        };
        let form = "cargo fmt --check";
        let oldest = format!("cargo check by Rust {OLDEST}");
        let long = [
            form,
            "mpi-base under Miri",
            &oldest,
            "cargo doc",
            "cargo clippy",
        ];
        assert_eq!(checks(all, false), [form]);
        assert_eq!(checks(all, true), long);
        assert_eq!(checks(none, false), [form]);
        assert_eq!(checks(none, true), [form, long[3], long[4]]);
    }
}
