//! Icarus Verilog: simulates the RTL in a testbench that reads a stimulus file and writes a trace file.

use std::path::Path;
use std::time::Duration;

use crate::formal::Design;
use crate::play::{self, Play};
use crate::source::{
    CHANNEL_LINE_BENCH, CHANNEL_RTL, CHANNEL_TRACE_BENCH, EUREKA_TRACE_BENCH, Source, TRACE_BENCH,
};
use crate::tool::{self, Tool, ToolError};
use crate::{channel_claims, eureka_claims};

const LIMIT: Duration = Duration::from_secs(300);

/// Simulates the toggle barrier with these values of the parameters `N` and `FILTER`
/// and returns the trace.
/// The testbench's header describes both formats.
pub fn trace(
    parameters: &[(&str, usize)],
    stimulus: &str,
    folder: &Path,
) -> Result<String, ToolError> {
    let design = Design::toggle_barrier();
    play(&TRACE_BENCH, &design, parameters, stimulus, folder)
}

/// Like [`trace`], for the eureka line with these parameters.
pub fn eureka_trace(
    parameters: &[(&str, usize)],
    stimulus: &str,
    folder: &Path,
) -> Result<String, ToolError> {
    let design = eureka_claims::design();
    play(&EUREKA_TRACE_BENCH, &design, parameters, stimulus, folder)
}

/// Like [`trace`], for version 2 with these values of the parameters `N`, `C` and `LEASE_BITS`.
pub fn channel_trace(
    parameters: &[(&str, usize)],
    stimulus: &str,
    folder: &Path,
) -> Result<String, ToolError> {
    let design = channel_claims::design();
    play(&CHANNEL_TRACE_BENCH, &design, parameters, stimulus, folder)
}

/// Measures which pulses pass a serial line's filter; the testbench describes the format.
pub fn line_pulses(folder: &Path) -> Result<String, ToolError> {
    let line = CHANNEL_RTL
        .iter()
        .filter(|source| source.name() == "channel_line.v");
    let line: Vec<_> = line.map(|source| (source.name(), source.text)).collect();
    run(&CHANNEL_LINE_BENCH, &line, &[], "", folder)
}

/// Simulates this design, original or mutated, in this testbench with these parameters and returns the trace.
pub fn play(
    bench: &Source,
    design: &Design,
    parameters: &[(&str, usize)],
    stimulus: &str,
    folder: &Path,
) -> Result<String, ToolError> {
    let texts = design.verilog.iter();
    let rtl: Vec<_> = texts.map(|(name, text)| (*name, text.as_str())).collect();
    run(bench, &rtl, parameters, stimulus, folder)
}

/// Simulates this design in a testbench without a stimulus and returns what the testbench prints.
pub fn simulate(
    bench: &Source,
    design: &Design,
    parameters: &[(&str, usize)],
    folder: &Path,
) -> Result<String, ToolError> {
    let texts = design.verilog.iter();
    let rtl: Vec<_> = texts.map(|(name, text)| (*name, text.as_str())).collect();
    compile(bench, &rtl, parameters, STRICT, folder)?;
    Tool::VVP.run("simulation", ["-n", "tb.vvp"], folder, LIMIT)
}

/// Like [`simulate`], with PicoRV32 as an additional source.
/// One warning is off: the third-party core reads a whole array in `@*`.
pub fn simulate_with_cores(
    bench: &Source,
    design: &Design,
    core: &str,
    parameters: &[(&str, usize)],
    folder: &Path,
) -> Result<String, ToolError> {
    let texts = design.verilog.iter();
    let texts = texts.map(|(name, text)| (*name, text.as_str()));
    let rtl: Vec<_> = texts.chain([(Tool::PICORV32.program, core)]).collect();
    let options = format!("{STRICT} -Wno-sensitivity-entire-array");
    compile(bench, &rtl, parameters, &options, folder)?;
    Tool::VVP.run("simulation", ["-n", "tb.vvp"], folder, LIMIT)
}

/// Applies a stimulus to a design and returns its outputs; the file `dump` receives its signals.
pub fn played(
    play: &Play,
    rtl: &[(&str, String)],
    stimulus: &str,
    dump: Option<&Path>,
    folder: &Path,
) -> Result<String, ToolError> {
    let wrapper = play.verilog(false);
    let texts = rtl.iter().map(|(name, text)| (*name, text.as_str()));
    let rtl: Vec<_> = texts.chain([("play.v", wrapper.as_str())]).collect();
    tool::write(&folder.join("stimulus"), stimulus)?;
    compile(&play::BENCH, &rtl, &play.bench_parameters(), STRICT, folder)?;
    let files = ["-n", "tb.vvp", "+stimulus=stimulus", "+trace=trace"].map(str::to_owned);
    let dump = dump.map(|path| format!("+vcd={}", path.display()));
    Tool::VVP.run("simulation", files.into_iter().chain(dump), folder, LIMIT)?;
    tool::read(&folder.join("trace"))
}

fn run(
    bench: &Source,
    rtl: &[(&str, &str)],
    parameters: &[(&str, usize)],
    stimulus: &str,
    folder: &Path,
) -> Result<String, ToolError> {
    tool::write(&folder.join("stimulus"), stimulus)?;
    compile(bench, rtl, parameters, STRICT, folder)?;
    let play = ["-n", "tb.vvp", "+stimulus=stimulus", "+trace=trace"];
    Tool::VVP.run("simulation", play, folder, LIMIT)?;
    tool::read(&folder.join("trace"))
}

/// Enables all warnings, each of which is an error here: the sources must also suit old tools, which are stricter.
const STRICT: &str = "-g2001 -Wall -Wno-timescale";

fn compile(
    bench: &Source,
    rtl: &[(&str, &str)],
    parameters: &[(&str, usize)],
    options: &str,
    folder: &Path,
) -> Result<(), ToolError> {
    let bench_file = (bench.name(), bench.text);
    let files = || rtl.iter().copied().chain([bench_file]);
    for (name, text) in files() {
        tool::write(&folder.join(name), text)?;
    }
    let top = bench.name().trim_end_matches(".v");
    let options = options.split(' ').chain(["-o", "tb.vvp", "-s", top]);
    let arguments = options.map(str::to_owned);
    let parameters = parameters
        .iter()
        .map(|(name, value)| format!("-P{top}.{name}={value}"));
    let arguments = arguments
        .chain(parameters)
        .chain(files().map(|(name, _)| name.to_owned()));
    let said = Tool::IVERILOG.run("compilation of the bench", arguments, folder, LIMIT)?;
    if !said.trim().is_empty() {
        return Err(ToolError::Failed {
            tool: Tool::IVERILOG,
            what: "compilation of the bench without a warning".to_owned(),
            log: said,
        });
    }
    Ok(())
}
