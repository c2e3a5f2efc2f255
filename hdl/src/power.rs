//! Estimates the power of an iCE40 UP5K, from published measurements of others and from toggles counted in a simulation.
//!
//! IceStorm has no power analysis, and Lattice's is proprietary. The estimate is
//!
//! P = V (I_halted + I_pll + f (Q_clock + F Q_cell) + r T Q_toggle) + V_pll I_pll' + C V_io^2 r / 2
//!
//! with f the clock frequency, F the number of flip-flops, r barriers per second, T toggles of all signals per barrier, and C the load of
//! the output, which rises once in two barriers. The constants are from the table at
//! <https://github.com/tinyvision-ai-inc/ice40_power> (commit 1af931e9): the currents of one UP5K on Lattice's breakout board.
//!
//! * I_halted is the current of the core with its clock halted, 92.1 uA at 1.219 V.
//! * With a PLL, the core takes 1419 uA at 16 MHz and 2573 uA at 48 MHz: 36.1 uA per MHz, and 750 uA for the PLL, whose own supply
//!   takes at most 138.9 uA more.
//! * Seven more counters of 28 bits (196 cells) take 27.8 uA more at 12 MHz, so 2.32 pC per cycle, for 196 clocked cells and 14 toggles.
//!   How much of this charge belongs to cells and how much to toggles was not measured. So all of it is counted for each of them, an upper
//!   bound: 11.8 fC per clocked cell and 0.165 pC per toggle, which is C V^2 with C = 0.136 pF.
//!
//! One device was measured, at room temperature, so leakage of a hot or fast device is not covered. No measurement of an HX or an ECP5 was found, and
//! no estimate is made for them.

use std::path::Path;

use crate::icarus;
use crate::play::{Play, bit, bits, in_bits};
use crate::source::{RTL, TOP};
use crate::tool::ToolError;
use crate::{formal, vcd};

/// Supply voltage of the core, in V.
pub const CORE: f64 = 1.219;
/// Supply voltage of the outputs, in V.
pub const IO: f64 = 3.3;
/// Current of the core with its clock halted, in A.
pub const HALTED: f64 = 92.1e-6;
/// Current of the PLL from the core's supply, in A:
/// 1419 uA at 16 MHz less the currents of the clock network and of the halted core.
pub const PLL_IN_CORE: f64 = 1419e-6 - 16e6 * CLOCK - HALTED;
/// Maximum current of the PLL's own supply, in A.
pub const PLL: f64 = 138.9e-6;
/// Charge of the clock network per cycle, in C: the slope between 16 and 48 MHz.
pub const CLOCK: f64 = (2573e-6 - 1419e-6) / 32e6;
/// Charge per cycle of 196 counter cells with 14 toggles, in C.
const COUNTERS: f64 = (641.3e-6 - 613.5e-6) / 12e6;
/// Maximum charge of a clocked cell per cycle, in C.
pub const CELL: f64 = COUNTERS / 196.0;
/// Maximum charge of a toggle of a signal, in C.
pub const TOGGLE: f64 = COUNTERS / 14.0;
/// Load capacitance of the output, in F: sixty buffer inputs and their traces.
pub const LOAD: f64 = 500e-12;

/// The activity of a design.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Activity {
    /// Clock frequency, in Hz.
    pub clock: f64,
    /// Number of flip-flops.
    pub flip_flops: f64,
    /// Number of toggles of all signals per barrier.
    pub toggles: f64,
    /// Number of barriers per second.
    pub barriers: f64,
}

/// The contributions to a power estimate, each in W.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Power of the core while its clock is halted.
    pub halted: f64,
    /// Power of the PLL, from both supplies.
    pub pll: f64,
    /// Power of the clock network and of the clock inputs of the flip-flops.
    pub clock: f64,
    /// Power of the toggles of signals.
    pub signals: f64,
    /// Power of charging the load of the output.
    pub output: f64,
}

impl Estimate {
    /// Returns the total power, in W.
    pub fn total(&self) -> f64 {
        self.halted + self.pll + self.clock + self.signals + self.output
    }
}

/// Estimates the power of a UP5K with its PLL.
pub fn estimate(activity: &Activity) -> Estimate {
    let Activity {
        clock,
        flip_flops,
        toggles,
        barriers,
    } = *activity;
    Estimate {
        halted: CORE * HALTED,
        pll: CORE * (PLL_IN_CORE + PLL),
        clock: CORE * clock * (CLOCK + flip_flops * CELL),
        signals: CORE * barriers * toggles * TOGGLE,
        output: LOAD * IO * IO * barriers / 2.0,
    }
}

/// Counts the toggles per barrier of all signals of version 1 except the clock,
/// in a simulation of the RTL with this number of nodes.
///
/// The nodes enter one edge after the other, because then an arrival causes the most toggles.
pub fn toggles(nodes: usize, folder: &Path) -> Result<f64, ToolError> {
    const BARRIERS: usize = 20;
    let play = Play {
        top: TOP,
        parameters: vec![("N", nodes)],
        inputs: vec![bit("rst_i"), bits("node_i", nodes)],
        outputs: vec![bits("node_o", nodes)],
    };
    let mut stimulus = String::new();
    let mut lines = 0_u64;
    for _ in 0..BARRIERS {
        for node in 0..nodes {
            lines ^= 1 << node;
            stimulus += &format!("0{}\n", in_bits(lines, nodes));
        }
        for _ in 0..4 {
            stimulus += &format!("0{}\n", in_bits(lines, nodes));
        }
    }
    let dump = folder.join("power.vcd");
    icarus::played(&play, &formal::texts(&RTL), &stimulus, Some(&dump), folder)?;
    let signals = vcd::read(&dump)?;
    // The clock is counted separately; signals named `unused` only silence warnings and are no circuit.
    let counted = |path: &str| !["clk_i", "unused"].iter().any(|end| path.ends_with(end));
    let signals = signals.iter().filter(|signal| counted(&signal.path));
    let toggles = signals.flat_map(|signal| &signal.bits);
    let toggles: u64 = toggles.map(|bit| bit.rises + bit.falls).sum();
    Ok(toggles as f64 / BARRIERS as f64)
}

/// Returns the rows of a Markdown table, one for each number of barriers per second.
pub fn table(clock: f64, flip_flops: u32, toggles: f64) -> String {
    let rates = [0.0, 1e3, 1e5, 1e6];
    let rows = rates.map(|barriers| {
        let parts = estimate(&Activity {
            clock,
            flip_flops: f64::from(flip_flops),
            toggles,
            barriers,
        });
        let cells = [
            parts.halted,
            parts.pll,
            parts.clock,
            parts.signals,
            parts.output,
            parts.total(),
        ];
        let cells = cells.map(|watts| format!("{:.3} mW", watts * 1e3));
        format!("| {barriers} | {} |\n", cells.join(" | "))
    });
    rows.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The estimate must be within a tenth of the measurement with a PLL, and above the one with counters.
    #[test]
    fn the_estimate_is_near_the_measurements_that_it_is_made_from() {
        let at = |clock: f64, cells: f64, toggles: f64| {
            let parts = estimate(&Activity {
                clock,
                flip_flops: cells,
                toggles,
                barriers: clock,
            });
            parts.halted + parts.pll - CORE * PLL + parts.clock + parts.signals
        };
        for (clock, measured) in [(16e6, 1419e-6), (32e6, 2029e-6), (48e6, 2573e-6)] {
            let ratio = at(clock, 0.0, 0.0) / (CORE * measured);
            assert!((0.95..1.05).contains(&ratio), "{clock}: {ratio}");
        }
        let more = at(12e6, 224.0, 16.0) - at(12e6, 28.0, 2.0);
        assert!(more >= CORE * 27.8e-6, "{more}");
    }
}
