//! `cargo xtask fpga`: bitstreams by open tools, with what they need of the device and how fast they may be clocked.

use std::fmt;
use std::fs;

use hdl::fpga::{self, TARGETS};
use hdl::tool::ToolError;

use crate::ui::{Steps, bold};
use crate::workspace;

/// Why there is no bitstream.
#[derive(Debug)]
pub enum FpgaError {
    /// The folder below `target/fpga` for a target's files could not be made.
    Folder(std::io::Error),
    /// yosys, nextpnr or icestorm is missing or failed; the error says which and at what.
    Tool(ToolError),
}

impl fmt::Display for FpgaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(error) => write!(f, "cannot make the folder for the bitstream: {error}"),
            Self::Tool(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for FpgaError {}

/// Builds every target and prints one table.
pub fn run() -> Result<(), FpgaError> {
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
        println!(
            "{:<22} {:>5} {:>12} {:>6} of {:<5} {:>4} of {:<4} {:>8.1} MHz {:>10.1} MHz {:>8.3} MHz",
            target.name,
            report.luts,
            report.flip_flops,
            report.cells.0,
            report.cells.1,
            report.pins.0,
            report.pins.1,
            report.fmax_mhz,
            report.icetime_mhz,
            target.clock_mhz
        );
        println!(
            "  bitstream      {} ({} bytes)",
            report.bitstream.display(),
            report.bytes
        );
        println!("  timing report  {}", folder.join("timing.txt").display());
        if target.pins.is_some() {
            println!("  to the board:  iceprog {}", report.bitstream.display());
        }
    }
    Ok(())
}
