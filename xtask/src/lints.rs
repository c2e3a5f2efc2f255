//! Clippy's lints in the build of the tests, without a compilation of their own.
//!
//! `clippy-driver` is rustc with clippy's passes. As the compiler of the workspace's packages it makes the same products and lints them,
//! for a few per cent of the compilation; `cargo clippy` would compile every package once more, which takes 80 s of processor time.
//! One of its lints, `incompatible_msrv`, finds functions of the standard library that the oldest stated compiler lacks.
//!
//! cargo keeps what each compiler makes under other names, so a change of the compiler compiles the packages once and nothing twice.

use std::path::{Path, PathBuf};
use std::process::Command;

/// clippy's separator of arguments in its environment variable.
const SEPARATOR: &str = "__CLIPPY_HACKERY__";

/// The compiler of the workspace's packages in a build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compiler {
    /// rustc.
    Plain,
    /// rustc with clippy's lints, each of which fails the build; plain rustc where clippy is not installed.
    Linting,
}

impl Compiler {
    /// Makes a cargo command compile by it.
    pub fn serve(self, cargo: &mut Command) {
        let driver = match self {
            Self::Plain => None,
            Self::Linting => driver(),
        };
        if let Some(driver) = driver {
            cargo.env("RUSTC_WORKSPACE_WRAPPER", driver);
            cargo.env("CLIPPY_ARGS", ["-D", "warnings", ""].join(SEPARATOR));
        }
    }
}

/// Returns the path of clippy's compiler, which is beside rustc, if it is installed.
pub fn driver() -> Option<PathBuf> {
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    let said = rustc.args(["--print", "sysroot"]).output().ok()?;
    let root = String::from_utf8(said.stdout).ok()?;
    let driver = Path::new(root.trim()).join("bin/clippy-driver");
    driver.is_file().then_some(driver)
}
