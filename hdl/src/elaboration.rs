//! Elaborates a design with given parameter values, and reports whether a tool accepts them.
//!
//! A value outside a parameter's range must be refused: in Verilog by instantiating a nonexistent module whose name is the rule,
//! in VHDL by the range of the generic.

use std::path::Path;
use std::time::Duration;

use crate::formal::Design;
use crate::tool::{Outcome, Tool, ToolError};
use crate::yosys::chparam;

const LIMIT: Duration = Duration::from_secs(300);

/// Names and values of parameters; parameters not listed keep their defaults.
pub type Parameters<'a> = &'a [(&'a str, i64)];

/// A tool that elaborates designs; the first three read the Verilog, the last one the VHDL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Elaborator {
    /// Verilator with its default warnings, each of which is an error.
    Verilator,
    /// Icarus Verilog.
    Icarus,
    /// yosys.
    Yosys,
    /// GHDL.
    Ghdl,
}

impl Elaborator {
    /// All elaborators.
    pub const ALL: [Elaborator; 4] = [Self::Verilator, Self::Icarus, Self::Yosys, Self::Ghdl];

    /// Writes the design into an empty folder, in which it can then be elaborated any number of times.
    ///
    /// For GHDL it also analyses the design here, because the analysis takes thirty times as long as
    /// an elaboration that refuses a parameter.
    pub fn prepare(self, design: &Design, folder: &Path) -> Result<(), ToolError> {
        design.write_into(folder)?;
        if self == Self::Ghdl {
            let files = design.vhdl.iter().map(|(name, _)| *name);
            let analysis = ["-a", "--std=93"].into_iter().chain(files);
            Tool::GHDL.run("analysis of the VHDL", analysis, folder, LIMIT)?;
        }
        Ok(())
    }

    /// Elaborates the design in a folder of [`prepare`](Self::prepare); a refused parameter is a result, not an error.
    pub fn elaborate(
        self,
        design: &Design,
        parameters: Parameters,
        folder: &Path,
    ) -> Result<Outcome, ToolError> {
        let top = design.top;
        let each = |form: &dyn Fn(&str, i64) -> String| {
            let parameters = parameters.iter();
            parameters
                .map(|(name, value)| form(name, *value))
                .collect::<Vec<_>>()
        };
        let files = design.verilog_names();
        let files = files.split(' ').map(str::to_owned);
        let (tool, arguments) = match self {
            Self::Verilator => {
                let options = ["--lint-only", "--top-module", top].map(str::to_owned);
                let options = options.into_iter();
                let values = each(&|name, value| format!("-G{name}={value}"));
                let arguments = options.chain(values).chain(files).collect();
                (Tool::VERILATOR, arguments)
            }
            Self::Icarus => {
                let options = "-g2001 -Wall -Wno-timescale -o design.vvp -s";
                let options = options.split(' ').chain([top]).map(str::to_owned);
                let values = each(&|name, value| format!("-P{top}.{name}={value}"));
                let arguments = options.chain(values).chain(files).collect();
                (Tool::IVERILOG, arguments)
            }
            Self::Yosys => {
                let script = format!(
                    "read_verilog {}; hierarchy -check -top {top}{}",
                    design.verilog_names(),
                    chparam(parameters)
                );
                (Tool::YOSYS, vec!["-q".into(), "-p".into(), script])
            }
            Self::Ghdl => {
                let options = ["--synth", "--std=93", "--out=none"].map(str::to_owned);
                let values = each(&|name, value| format!("-g{name}={value}"));
                let options = options.into_iter().chain(values);
                (Tool::GHDL, options.chain([top.to_owned()]).collect())
            }
        };
        tool.outcome("elaboration", arguments, folder, LIMIT)
    }
}
