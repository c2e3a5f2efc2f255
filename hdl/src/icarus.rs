//! Icarus Verilog: the RTL under the bench that plays a stimulus file and writes a trace file.

use std::path::Path;
use std::time::Duration;

use crate::source::{RTL, TRACE_BENCH};
use crate::tool::{self, Tool, ToolError};

const LIMIT: Duration = Duration::from_secs(300);

/// Plays a stimulus to the toggle barrier of so many nodes and gives the trace; for the format see the bench.
///
/// A warning of the compiler is a failure: the sources are meant for old tools, which are stricter.
pub fn trace(nodes: usize, stimulus: &str, folder: &Path) -> Result<String, ToolError> {
    tool::write(&folder.join("stimulus"), stimulus)?;
    let parameter = format!("-Ptrace_tb.N={nodes}");
    let arguments = [
        "-g2001",
        "-Wall",
        "-Wno-timescale",
        "-s",
        "trace_tb",
        &parameter,
        "-o",
        "tb.vvp",
    ];
    for source in RTL.iter().chain([&TRACE_BENCH]) {
        tool::write(&folder.join(source.name()), source.text)?;
    }
    let files = RTL
        .iter()
        .chain([&TRACE_BENCH])
        .map(|source| -> &str { source.name() });
    let arguments = arguments.into_iter().chain(files);
    let said = Tool::IVERILOG.run("compilation of the bench", arguments, folder, LIMIT)?;
    if !said.trim().is_empty() {
        return Err(ToolError::Failed {
            tool: Tool::IVERILOG,
            what: "compilation of the bench without a warning".to_owned(),
            log: said,
        });
    }
    let play = ["-n", "tb.vvp", "+stimulus=stimulus", "+trace=trace"];
    Tool::VVP.run("simulation", play, folder, LIMIT)?;
    tool::read(&folder.join("trace"))
}
