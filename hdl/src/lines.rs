//! Line coverage of the RTL by a stimulus, counted by Verilator in a bench and reported in lcov's format.
//!
//! The benches are the same as for Icarus. Building one takes some seconds, because it contains delays.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::source::{Source, source};
use crate::tool::{self, Tool, ToolError};

const LIMIT: Duration = Duration::from_secs(600);

const MAIN: Source = source!("shared/dv/coverage_main.cpp");

/// Simulates a bench with a stimulus and these parameters and returns Verilator's coverage file; for the formats see the bench.
pub fn count(
    bench: &Source,
    rtl: &[Source],
    parameters: &[(&str, usize)],
    stimulus: &str,
    folder: &Path,
) -> Result<PathBuf, ToolError> {
    tool::write(&folder.join("stimulus"), stimulus)?;
    let files = || rtl.iter().chain([bench, &MAIN]);
    for source in files() {
        tool::write(&folder.join(source.name()), source.text)?;
    }
    let top = bench.name().trim_end_matches(".v");
    // No optimisation: the compiler takes most of the time.
    let flags = format!("-O0 -DBENCH=V{top} -DBENCH_HEADER=\\\"V{top}.h\\\"");
    let options = "--cc --exe --build --timing --coverage-line -Wno-lint -Wno-TIMESCALEMOD -Mdir obj -o bench";
    let arguments = options.split(' ').map(str::to_owned);
    let arguments = arguments
        .chain(["--top-module", top, "-CFLAGS", &flags].map(str::to_owned))
        .chain(
            parameters
                .iter()
                .map(|(name, value)| format!("-G{name}={value}")),
        )
        .chain(files().map(|source| source.name().to_owned()));
    Tool::VERILATOR.run("the bench that counts lines", arguments, folder, LIMIT)?;
    // Through a shell, because the bench is in this folder and not on the `PATH`.
    let shell = Tool {
        program: "sh",
        ..Tool::VERILATOR
    };
    let play = ["-c", "./obj/bench +stimulus=stimulus +trace=trace"];
    shell.run("the count of lines", play, folder, LIMIT)?;
    Ok(folder.join("coverage.dat"))
}

/// Merges the coverage files into lcov's format.
pub fn lcov(counts: &[PathBuf], folder: &Path) -> Result<String, ToolError> {
    let arguments = ["--write-info", "lines.info"].map(PathBuf::from);
    let arguments = arguments.into_iter().chain(counts.iter().cloned());
    Tool::VERILATOR_COVERAGE.run("the sum of the counts", arguments, folder, LIMIT)?;
    tool::read(&folder.join("lines.info"))
}
