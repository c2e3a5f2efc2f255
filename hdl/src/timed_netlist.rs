//! Converts a placed and routed netlist with the delays of its SDF file to Verilog that any simulator can run.
//!
//! Icarus 11 reads neither the empty instance name nor the INTERCONNECT entries of nextpnr's SDF, so this module writes the delays into the netlist:
//! each input pin of a cell is connected through a new wire with `assign #delay`,
//! and so is each output pin, with its largest delay from any input.
//! The checks of set-up and hold times are omitted;
//! the timing analyses of nextpnr and icetime cover them.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use crate::formal::{Design, texts};
use crate::fpga::Target;
use crate::play::{self, Play};
use crate::source::Source;
use crate::tool::{self, Tool, ToolError};
use crate::yosys::chparam;

const LIMIT: Duration = Duration::from_secs(300);

/// The simulation models of the cells, in Debian's package of yosys.
const CELLS: &str = "/usr/share/yosys/ice40/cells_sim.v";

/// Delays of input and output pins in ps, by cell and pin.
#[derive(Debug, Default)]
struct Delays {
    to_input: HashMap<(String, String), u64>,
    to_output: HashMap<(String, String), u64>,
}

/// Returns a name of the SDF file without its escape characters.
fn unescaped(name: &str) -> String {
    name.replace('\\', "")
}

/// Parses the first number of a triple such as `(308:308:308)`.
fn picoseconds(word: &str) -> Option<u64> {
    word.trim_start_matches('(').split(':').next()?.parse().ok()
}

/// Parses the INTERCONNECT and IOPATH entries; nextpnr writes one entry per line, in picoseconds.
fn delays(sdf: &str) -> Delays {
    let mut delays = Delays::default();
    let mut cell = String::new();
    for line in sdf.lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        match words.as_slice() {
            ["(INSTANCE", name] => cell = unescaped(name.trim_end_matches(')')),
            ["(INTERCONNECT", _, to, delay, ..] => {
                if let (Some((to, pin)), Some(delay)) = (to.rsplit_once('/'), picoseconds(delay)) {
                    delays
                        .to_input
                        .insert((unescaped(to), pin.to_owned()), delay);
                }
            }
            ["(IOPATH", .., to, delay, _] => {
                if let Some(delay) = picoseconds(delay) {
                    let longest = delays
                        .to_output
                        .entry((cell.clone(), (*to).to_owned()))
                        .or_default();
                    *longest = delay.max(*longest);
                }
            }
            _ => {}
        }
    }
    delays
}

/// Returns the netlist with delays. yosys writes the head of an instance, and then one connection per line.
fn delayed(netlist: &str, delays: &Delays) -> String {
    let mut text = "`timescale 1ps / 1ps\n".to_owned();
    let (mut cell, mut wires, mut number) = (String::new(), String::new(), 0);
    for line in netlist.lines() {
        let trimmed = line.trim();
        if let Some(head) = trimmed.strip_suffix('(') {
            let head = head.trim_start_matches(')').trim();
            let name = head.rsplit(' ').next().unwrap_or_default();
            cell = name.trim_start_matches('\\').to_owned();
        }
        let connection = trimmed
            .strip_prefix('.')
            .and_then(|rest| rest.split_once('('));
        let Some((pin, rest)) = connection else {
            text += line;
            text.push('\n');
            if trimmed == ");" {
                text += &std::mem::take(&mut wires);
            }
            continue;
        };
        let net = rest.trim_end_matches(',').trim_end_matches(')');
        let key = (cell.clone(), pin.to_owned());
        let (from, to, delay) = match (delays.to_input.get(&key), delays.to_output.get(&key)) {
            (Some(delay), _) => (net.to_owned(), format!("delayed_{number} "), *delay),
            (None, Some(delay)) => (format!("delayed_{number} "), net.to_owned(), *delay),
            (None, None) => {
                text += line;
                text.push('\n');
                continue;
            }
        };
        let comma = if rest.ends_with(',') { "," } else { "" };
        text += &format!("    .{pin}(delayed_{number} ){comma}\n");
        wires += &format!("  wire delayed_{number} ;\n  assign #{delay} {to} = {from};\n");
        number += 1;
    }
    text
}

/// Places and routes the design for an iCE40, applies the stimulus with this clock period in picoseconds, and returns the outputs before each falling edge.
pub fn played(
    play: &Play,
    sources: &[Source],
    target: &Target,
    stimulus: &str,
    period: usize,
    folder: &Path,
) -> Result<String, ToolError> {
    lay_out(play, sources, target, None, folder)?;
    let wrapper = wrapper(play).verilog(true);
    simulated(play, &wrapper, stimulus, period, folder)
}

/// Like [`played`], with a board's whole top level at its pins: pads, PLL and clock network.
///
/// The simulated PLL does not multiply: the clock at the board's pin has the frequency of the PLL's output.
pub fn board_played(
    play: &Play,
    target: &Target,
    stimulus: &str,
    period: usize,
    folder: &Path,
) -> Result<String, ToolError> {
    lay_out(play, target.sources, target, target.pins.as_ref(), folder)?;
    let wrapper = wrapper(play).verilog(true);
    let wrapper = wrapper.replace(".clk_i(clk_i)", ".clk12_i(clk_i)") + PLL;
    simulated(play, &wrapper, stimulus, period, folder)
}

/// An empty module in place of the PLL; [`with_pll`] connects its reference to the clock network.
const PLL: &str = "module ICESTORM_PLL #(parameter DELAY_ADJMODE_FB = 0, DELAY_ADJMODE_REL = 0, DIVF = 0, DIVQ = 0, DIVR = 0,\n    \
     FDA_FEEDBACK = 0, FDA_RELATIVE = 0, FEEDBACK_PATH = 0, FILTER_RANGE = 0, PLLOUT_SELECT_A = 0, PLLOUT_SELECT_B = 0,\n    \
     PLLTYPE = 0, SHIFTREG_DIVMODE = 0, TEST_MODE = 0) (input BYPASS, REFERENCECLK, RESETB);\nendmodule\n";

/// Connects the PLL's reference clock to the clock network, because nextpnr's netlist has no connection between the PLL and its global buffer.
///
/// A PLL of the type `PAD` has no such input: its reference is the pin itself.
fn with_pll(netlist: &str) -> String {
    let reference = netlist.split_once(".REFERENCECLK(").map(|(_, rest)| rest);
    let reference = reference.and_then(|rest| rest.split_once(')'));
    let reference = reference.map_or("clk12_i", |(net, _)| net);
    netlist.replace(
        ".GLOBAL_BUFFER_OUTPUT(clk)",
        &format!(".GLOBAL_BUFFER_OUTPUT(clk),\n    .USER_SIGNAL_TO_GLOBAL_BUFFER({reference})"),
    )
}

/// Returns the netlist as a design: its top module is `top`.
fn wrapper(play: &Play) -> Play {
    Play {
        top: "top",
        ..play.clone()
    }
}

/// Synthesises, places and routes the design, and writes the netlist with its delays as `timed.v`.
fn lay_out(
    play: &Play,
    sources: &[Source],
    target: &Target,
    pins: Option<&Source>,
    folder: &Path,
) -> Result<(), ToolError> {
    let design = Design {
        top: play.top,
        verilog: texts(sources),
        vhdl: Vec::new(),
    };
    design.write_into(folder)?;
    let top = play.top;
    let script = format!(
        "read_verilog {}\nhierarchy -top {top}{}\nrename -top {top}\nsynth_ice40 -top {top} -json top.json\n",
        design.verilog_names(),
        chparam(&play.parameters),
    );
    tool::write(&folder.join("synth.ys"), &script)?;
    Tool::YOSYS.run("synthesis", ["-q", "-s", "synth.ys"], folder, LIMIT)?;
    let device = format!("--{}", target.device);
    let files = "--json top.json --sdf top.sdf --write placed.json --asc top.asc --package";
    let mut arguments = vec![device.as_str()];
    arguments.extend(files.split(' ').chain([target.package]));
    if let Some(pins) = pins {
        tool::write(&folder.join(pins.name()), pins.text)?;
        arguments.extend(["--pcf", pins.name()]);
    }
    Tool::NEXTPNR.run("place and route", arguments, folder, LIMIT)?;
    let netlist = "read_json placed.json; write_verilog -noattr -norename placed.v";
    Tool::YOSYS.run("the netlist", ["-q", "-p", netlist], folder, LIMIT)?;
    let delays = delays(&tool::read(&folder.join("top.sdf"))?);
    let netlist = with_pll(&tool::read(&folder.join("placed.v"))?);
    tool::write(&folder.join("timed.v"), &delayed(&netlist, &delays))
}

/// Applies the stimulus to `timed.v` and returns the outputs.
fn simulated(
    play: &Play,
    wrapper: &str,
    stimulus: &str,
    period: usize,
    folder: &Path,
) -> Result<String, ToolError> {
    tool::write(&folder.join("play.v"), wrapper)?;
    tool::write(&folder.join(play::BENCH.name()), play::BENCH.text)?;
    tool::write(&folder.join("stimulus"), stimulus)?;
    let parameters = play
        .bench_parameters()
        .map(|(name, value)| format!("-Pplay_tb.{name}={value}"));
    let options = "-g2005 -DNO_ICE40_DEFAULT_ASSIGNMENTS -o timed.vvp -s play_tb";
    let arguments = options.split(' ').map(str::to_owned).chain(parameters);
    let half = format!("-Pplay_tb.HALF={}", period / 2);
    let files = ["play_tb.v", "play.v", "timed.v", CELLS].map(str::to_owned);
    let arguments = arguments.chain([half]).chain(files);
    Tool::IVERILOG.run("compilation of the netlist", arguments, folder, LIMIT)?;
    let run = ["-n", "timed.vvp", "+stimulus=stimulus", "+trace=trace"];
    Tool::VVP.run("simulation of the netlist", run, folder, LIMIT)?;
    tool::read(&folder.join("trace"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_written_before_inputs_and_behind_outputs() {
        let sdf = "(INSTANCE )\n(INTERCONNECT a\\[0\\]/O b.c_LC/I0 (588:588:588) (1:1:1))\n(INSTANCE b.c_LC)\n\
                   (IOPATH I0 O (300:300:300) (1:1:1))\n(IOPATH (posedge CLK) O (540:540:540) (1:1:1))\n";
        let netlist = "  ICESTORM_LC #(\n    .DFF_ENABLE(1'h1)\n  ) \\b.c_LC  (\n    .I0(\\a[0] ),\n    .O(x)\n  );\n";
        let text = delayed(netlist, &delays(sdf));
        assert!(text.contains(".I0(delayed_0 ),\n"), "{text}");
        assert!(text.contains("assign #588 delayed_0  = \\a[0] ;"), "{text}");
        assert!(text.contains("assign #540 x = delayed_1 ;"), "{text}");
        assert!(text.contains(".DFF_ENABLE(1'h1)"), "{text}");
    }
}
