//! Equivalence check of two designs: with the same inputs, their outputs never differ.
//!
//! yosys combines both designs into a miter, whose one output is high if their outputs differ; ABC decides whether it can ever be high.
//! ABC rewrites the miter to fewer gates (`dc2`), which yosys would do in three times the time.
//! By simulation ABC finds pairs of flip-flops (`lcorr`), and then of any signals, that agree from power-on, possibly inverted, and proves by induction over
//! one edge that they are equal (`scorr`). If the designs are equal, this removes the miter; otherwise ABC searches for a difference (`pdr`).
//! An undriven net is a free input in each design, so a proof holds for all its values.

use std::path::Path;

use super::{Design, LIMIT, Verdict};
use crate::fpga::Family;
use crate::tool::{self, Tool, ToolError};
use crate::yosys::chparam;

type Parameters<'a> = &'a [(&'a str, usize)];

/// Decides whether the VHDL and the Verilog are equivalent.
pub(super) fn vhdl(
    design: &Design,
    parameters: Parameters,
    folder: &Path,
) -> Result<Verdict, ToolError> {
    let twin = vhdl_as_verilog(design, parameters, folder)?;
    tool::write(&folder.join("other.v"), &twin)?;
    decide(design, parameters, "", folder)
}

/// Decides whether the netlist synthesised for a device family is equivalent to the Verilog.
pub(super) fn netlist(
    design: &Design,
    family: Family,
    parameters: Parameters,
    folder: &Path,
) -> Result<Verdict, ToolError> {
    synthesise(design, family, parameters, folder)?;
    // The Verilog models of the device's cells; `-defer`, because elaborating block RAMs takes a minute.
    let cells = match family {
        Family::Ice40 => "read_verilog -icells -defer +/ice40/cells_sim.v",
        Family::Ecp5 => "read_verilog -icells -defer +/ecp5/cells_sim.v",
        Family::Gowin => "read_verilog -icells -defer +/gowin/cells_sim.v",
    };
    decide(design, parameters, cells, folder)
}

fn decide(
    design: &Design,
    parameters: Parameters,
    cells: &str,
    folder: &Path,
) -> Result<Verdict, ToolError> {
    let script = miter(design, parameters, cells);
    tool::write(&folder.join("miter.ys"), &script)?;
    Tool::YOSYS.run("a miter", ["-q", "-s", "miter.ys"], folder, LIMIT)?;
    let script = "read_aiger miter.aig; dc2; lcorr; scorr; pdr; print_status";
    let said = Tool::ABC.run("a proof of equality", ["-c", script], folder, LIMIT)?;
    let has = |words| said.contains(words);
    match () {
        () if has("Status = 1 ") => Ok(Verdict::Proved { induction: 1 }),
        () if has("Status = 0 ") => Ok(Verdict::Refuted),
        () if has("Status = -1 ") => Ok(Verdict::Open),
        () => Err(ToolError::Unreadable {
            tool: Tool::ABC,
            what: "how the proof ended".to_owned(),
        }),
    }
}

/// Returns the yosys script of the miter: `gold` is the Verilog, `gate` is the module of the same name in `other.v`.
fn miter(design: &Design, parameters: Parameters, cells: &str) -> String {
    let top = design.top;
    format!(
        "read_verilog {}\n\
         hierarchy -check -top {top}{}\n\
         proc; flatten; opt_clean\n\
         rename -top gold\n\
         design -stash gold\n\
         read_verilog other.v\n\
         {cells}\n\
         hierarchy -check -top {top}\n\
         proc; flatten; opt_clean\n\
         rename -top gate\n\
         design -stash gate\n\
         design -copy-from gold -as gold gold\n\
         design -copy-from gate -as gate gate\n\
         miter -equiv -flatten gold gate miter\n\
         hierarchy -top miter\n\
         opt_clean; techmap; opt_clean; dffunmap; async2sync; simplemap\n\
         dfflegalize -cell $_DFF_P_ 01\n\
         abc -fast -g AND\n\
         setundef -undriven -anyseq\n\
         write_aiger -zinit miter.aig\n",
        design.verilog_names(),
        chparam(parameters),
    )
}

/// Translates the VHDL with GHDL to generic Verilog, in the file `other.v`.
fn vhdl_as_verilog(
    design: &Design,
    parameters: &[(&str, usize)],
    folder: &Path,
) -> Result<String, ToolError> {
    let files = design.vhdl.iter().map(|(name, _)| *name);
    let analysis = ["-a", "--std=93"].into_iter().chain(files);
    Tool::GHDL.run("analysis of the VHDL", analysis, folder, LIMIT)?;
    let mut arguments = ["--synth", "--std=93", "--out=verilog"]
        .map(String::from)
        .to_vec();
    arguments.extend(
        parameters
            .iter()
            .map(|(name, value)| format!("-g{name}={value}")),
    );
    arguments.push(design.top.to_owned());
    let log = Tool::GHDL.run("synthesis of the VHDL", arguments, folder, LIMIT)?;
    Ok(without_warnings(&log))
}

/// Returns the Verilog in GHDL's output, which begins with warnings, for example about a signal that no statement assigns.
fn without_warnings(log: &str) -> String {
    let is_warning = |line: &&str| !line.starts_with("module ");
    let lines: Vec<&str> = log.lines().skip_while(is_warning).collect();
    lines.join("\n") + "\n"
}

/// Writes the flattened netlist of device cells to `other.v`, under the name of the design's top module.
fn synthesise(
    design: &Design,
    family: Family,
    parameters: &[(&str, usize)],
    folder: &Path,
) -> Result<(), ToolError> {
    let top = design.top;
    let synthesis = family.synthesis();
    let script = format!(
        "read_verilog {}\nhierarchy -check -top {top}{}\nrename -top {top}\n\
         {synthesis} -top {top}\nwrite_verilog -noattr other.v\n",
        design.verilog_names(),
        chparam(parameters),
    );
    tool::write(&folder.join("synth.ys"), &script)?;
    Tool::YOSYS
        .run(
            "synthesis for a device",
            ["-q", "-s", "synth.ys"],
            folder,
            LIMIT,
        )
        .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_of_ghdl_are_no_part_of_its_verilog() {
        let verilog = "module a\n  (input b);\nendmodule\nmodule c;\nendmodule\n";
        let warning =
            "a.vhd:208:10:warning: signal \"q\" is never assigned\n  signal q : bit;\n         ^\n";
        assert_eq!(without_warnings(verilog), verilog);
        assert_eq!(without_warnings(&(warning.to_owned() + verilog)), verilog);
    }
}
