//! `cargo xtask firmware`: builds the barrier's node programs for microcontrollers.

use std::fmt;
use std::fs;
use std::process::Command;

use crate::process::{self, ProcessError};
use crate::ui::{self, Steps};
use crate::workspace;

/// The compilation target: a Cortex-M0, without floating-point unit and without operating system.
pub const TARGET: &str = "thumbv6m-none-eabi";

/// The packages in `barrier-driver/firmware` that are programs.
const PROGRAMS: &[&str] = &["rp2040", "microbit"];

/// The reason why the firmware was not built.
#[derive(Debug)]
pub enum FirmwareError {
    /// rustup could not fetch the target's standard library.
    Target(ProcessError),
    /// cargo failed; its messages are printed above.
    Build(ProcessError),
    /// The program that cargo should have built is missing.
    Image(std::io::Error),
}

impl fmt::Display for FirmwareError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Target(error) => {
                write!(f, "rustup cannot add the target {TARGET}: {error}")
            }
            Self::Build(error) => error.fmt(f),
            Self::Image(error) => write!(f, "cannot read what was built: {error}"),
        }
    }
}

impl std::error::Error for FirmwareError {}

/// Adds the target if rustup manages the compiler; without rustup it must be installed already.
pub fn add_target() -> Result<(), ProcessError> {
    if !crate::packages::on_path("rustup") {
        ui::say("      there is no rustup; the compiler is used as it is");
        return Ok(());
    }
    process::run(Command::new("rustup").args(["--quiet", "target", "add", TARGET]))
}

/// Builds every program with optimisation, and prints its path.
pub fn run() -> Result<(), FirmwareError> {
    add_target().map_err(FirmwareError::Target)?;
    let folder = workspace::root().join("barrier-driver/firmware");
    let made = workspace::target().join("firmware");
    let mut steps = Steps::new(PROGRAMS.len());
    for program in PROGRAMS {
        steps.step(format!("building {program}"), || {
            process::run(
                Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
                    .args(["build", "--release", "--locked", "--target", TARGET])
                    .args(["--package", program])
                    .arg("--target-dir")
                    .arg(&made)
                    // Compiler flags for the host must not apply to the microcontroller.
                    .env_remove("RUSTFLAGS")
                    .env_remove("CARGO_ENCODED_RUSTFLAGS")
                    .current_dir(&folder),
            )
            .map_err(FirmwareError::Build)
        })?;
        let image = made.join(TARGET).join("release").join(program);
        let bytes = fs::metadata(&image).map_err(FirmwareError::Image)?.len();
        println!("  {} ({bytes} bytes of ELF)", image.display());
    }
    Ok(())
}
