//! Simulation, under Icarus, of several bus masters of one chip that pass barriers through the register block.

use std::path::Path;

use crate::formal::Design;
use crate::icarus;
use crate::source::{Source, source};
use crate::tool::{Tool, ToolError};

/// The testbench; its header describes the three [`Way`]s.
const BENCH: Source = source!("registers/dv/masters_tb.v");

/// How a bus master enters a barrier and detects the release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// The master enters by a store and polls with loads.
    Poll = 0,
    /// The master enters by a store and sleeps until its wake line rises.
    Wake = 1,
    /// The master enters by a pulse and gets a pulse at the release, without the bus.
    Pulse = 2,
}

/// The results that the testbench prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// Number of barriers that every master passed.
    pub barriers: u64,
    /// Number of times that a master left before another one had entered.
    pub early: u64,
    /// Number of bus errors.
    pub errors: u64,
    /// Minimum number of cycles from the last arrival at the block until a master detects the release.
    pub least: u64,
    /// Maximum number of cycles from the last arrival at the block until a master detects the release.
    pub most: u64,
    /// Number of pulses of the line `start_o`.
    pub pulses: u64,
    /// Minimum and maximum number of cycles from the last arrival at the block to the first cycle of a pulse.
    pub pulse_begins: (u64, u64),
    /// Minimum and maximum width of a pulse in cycles; the testbench programs [`PULSE_WIDTH`].
    pub pulse_width: (u64, u64),
}

/// The programmed width of the pulses, in cycles.
pub const PULSE_WIDTH: u64 = 2;

/// Runs the testbench with a design of `barrier_wishbone`, original or mutated.
pub fn play(design: &Design, masters: usize, way: Way, folder: &Path) -> Result<Seen, ToolError> {
    let parameters = [
        ("N", masters),
        ("WAY", way as usize),
        ("WIDTH", PULSE_WIDTH as usize),
    ];
    let said = icarus::simulate(&BENCH, design, &parameters, folder)?;
    read(&said).ok_or(ToolError::Failed {
        tool: Tool::VVP,
        what: "the bench of masters".to_owned(),
        log: said,
    })
}

/// Parses `way 1: 4 masters, 500 barriers, 0 early, 0 errors, 2 to 2 cycles, 500 pulses, 2 to 2 cycles, 2 to 2 wide`.
fn read(said: &str) -> Option<Seen> {
    let line = said.lines().find(|line| line.contains("masters,"))?;
    let numbers: Vec<u64> = line
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|word| word.parse().ok())
        .collect();
    let (about, pulse) = numbers.split_at_checked(7)?;
    let &[_, _, barriers, early, errors, least, most] = about else {
        return None;
    };
    let &[pulses, soonest, latest, narrowest, widest] = pulse else {
        return None;
    };
    Some(Seen {
        barriers,
        early,
        errors,
        least,
        most,
        pulses,
        pulse_begins: (soonest, latest),
        pulse_width: (narrowest, widest),
    })
}
