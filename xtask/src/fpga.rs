//! `cargo xtask fpga`: builds bitstreams with open-source tools and
//! prints the device usage and the maximum clock frequency.

use std::fmt;
use std::fs;
use std::process::Command;

use hdl::fpga::{self, TARGETS};
use hdl::tool::{Tool, ToolError};

use crate::ui::{Steps, bold};
use crate::venv::{self, VenvError};
use crate::workspace;

/// Environment variable that is set when this program starts itself with the tools in its search path;
/// it prevents another such start.
const AGAIN: &str = "PORTCULLIS_FPGA_AGAIN";

/// Reasons why no bitstream is built.
#[derive(Debug)]
pub enum FpgaError {
    /// The folder of a target below `target/fpga` could not be created.
    Folder(std::io::Error),
    /// The Python packages with the tools could not be fetched.
    Venv(VenvError),
    /// This program could not start itself again.
    Again(std::io::Error),
    /// The program started by this program failed and has printed the reason.
    Told,
    /// yosys, nextpnr or icestorm is missing or failed; the error names tool and step.
    Tool(ToolError),
}

impl fmt::Display for FpgaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(error) => write!(f, "cannot make the folder for the bitstream: {error}"),
            Self::Venv(error) => error.fmt(f),
            Self::Again(error) => {
                write!(
                    f,
                    "cannot run again with the tools for ECP5 and Gowin: {error}"
                )
            }
            Self::Told => f.write_str("no bitstreams, for the reason above"),
            Self::Tool(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for FpgaError {}

/// The arguments of `fpga`.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Print an estimate of the iCEBreaker's power instead of building bitstreams
    #[arg(long)]
    power: bool,
}

/// Prints [`hdl::power`]'s estimate for version 1 on the iCEBreaker, for several numbers of barriers per second.
fn power() -> Result<(), FpgaError> {
    let target = &fpga::ICEBREAKER;
    let folder = workspace::target().join("fpga/power");
    fs::create_dir_all(&folder).map_err(FpgaError::Folder)?;
    let report = fpga::build(target, &folder).map_err(FpgaError::Tool)?;
    let toggles = hdl::power::toggles(target.wires as usize, &folder);
    let toggles = toggles.map_err(FpgaError::Tool)?;
    println!(
        "{}: {} flip-flops, {toggles:.0} toggles in a barrier\n\n\
         | barriers a second | halted core | PLL | clock | signals | output | together |\n|---|---|---|---|---|---|---|",
        target.name, report.flip_flops
    );
    print!(
        "{}",
        hdl::power::table(target.clock_mhz * 1e6, report.flip_flops, toggles)
    );
    Ok(())
}

/// Builds every target and prints a table of the results.
///
/// The tools for ECP5 and Gowin are in a Python environment. If they are not in the search path, this function creates the environment
/// and starts this program again with the environment's programs in the search path.
pub fn run(options: &Options) -> Result<(), FpgaError> {
    if options.power {
        return power();
    }
    let there = Tool::NEXTPNR_ECP5.is_there() && Tool::NEXTPNR_GOWIN.is_there();
    if !there && std::env::var_os(AGAIN).is_none() {
        venv::NEXTPNR.ensure(&[]).map_err(FpgaError::Venv)?;
        let this = std::env::current_exe().map_err(FpgaError::Again)?;
        let status = Command::new(this)
            .arg("fpga")
            .env(AGAIN, "1")
            .env("PATH", venv::NEXTPNR.search_path())
            .status()
            .map_err(FpgaError::Again)?;
        // The started program has printed its error.
        return if status.success() {
            Ok(())
        } else {
            Err(FpgaError::Told)
        };
    }
    build()
}

fn build() -> Result<(), FpgaError> {
    let mut steps = Steps::new(TARGETS.len());
    let mut rows = Vec::new();
    for target in TARGETS {
        let folder = workspace::target().join("fpga").join(target.name);
        fs::create_dir_all(&folder).map_err(FpgaError::Folder)?;
        let report = steps.step(format!("building {}", target.name), || {
            fpga::build(target, &folder).map_err(FpgaError::Tool)
        })?;
        rows.push((target, folder, report));
    }
    println!(
        "{}",
        bold(
            "target                  LUT4   flip-flops   cells          pins        Fmax nextpnr   Fmax icetime   wanted"
        )
    );
    for (target, folder, report) in rows {
        let icetime = match report.icetime_mhz {
            Some(mhz) => format!("{mhz:.1} MHz"),
            None => "-".to_owned(),
        };
        println!(
            "{:<22} {:>5} {:>12} {:>6} of {:<5} {:>4} of {:<4} {:>8.1} MHz {:>14} {:>8.3} MHz",
            target.name,
            report.luts,
            report.flip_flops,
            report.cells.0,
            report.cells.1,
            report.pins.0,
            report.pins.1,
            report.fmax_mhz,
            icetime,
            target.clock_mhz
        );
        println!(
            "  bitstream      {} ({} bytes)",
            report.bitstream.display(),
            report.bytes
        );
        println!("  timing report  {}", folder.join("timing.txt").display());
        if target.pins.is_some() {
            println!(
                "  to the board:  {} {}",
                target.loader,
                report.bitstream.display()
            );
        }
    }
    Ok(())
}
