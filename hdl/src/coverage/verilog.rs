//! Coverage of the Verilog: lines and branches by Verilator, signals by a dump of Icarus.

use std::path::Path;
use std::time::Duration;

use super::{Counts, Points, Subject, note_signals};
use crate::formal::texts;
use crate::icarus;
use crate::source::{Source, source};
use crate::tool::{self, Tool, ToolError};
use crate::vcd;

const LIMIT: Duration = Duration::from_secs(600);

const MAIN: Source = source!("shared/dv/coverage_main.cpp");

/// Applies the stimulus to the Verilog and returns the coverage.
pub fn measure(subject: &Subject, folder: &Path) -> Result<Counts, ToolError> {
    let mut counts = Counts::default();
    let text = points(subject, folder)?;
    counts.lines = kind(&text, "v_line/");
    counts.branches = kind(&text, "v_branch/");
    let dump = folder.join("dump.vcd");
    counts.trace = icarus::played(
        &subject.play,
        &texts(&subject.verilog),
        &subject.stimulus,
        Some(&dump),
        folder,
    )?;
    note_signals(&vcd::read(&dump)?, subject.states, &mut counts);
    Ok(counts)
}

/// Applies the stimulus to the Verilog under Icarus, without measuring coverage, and returns the outputs.
pub fn trace(subject: &Subject, folder: &Path) -> Result<String, ToolError> {
    icarus::played(
        &subject.play,
        &texts(&subject.verilog),
        &subject.stimulus,
        None,
        folder,
    )
}

/// Builds the design with coverage counters, applies the stimulus and returns Verilator's coverage file.
fn points(subject: &Subject, folder: &Path) -> Result<String, ToolError> {
    tool::write(&folder.join("stimulus"), &subject.stimulus)?;
    tool::write(&folder.join("play.v"), &subject.play.verilog(false))?;
    for source in subject.verilog.iter().chain([&MAIN]) {
        tool::write(&folder.join(source.name()), source.text)?;
    }
    // Compiled without optimisation, because the compiler takes most of the time.
    let options = "--cc --exe --build --coverage-line -Wno-lint -Mdir obj -o bench --top-module play -CFLAGS -O0 play.v";
    let arguments = options.split(' ').map(str::to_owned);
    let files = subject.verilog.iter().chain([&MAIN]);
    let arguments = arguments.chain(files.map(|source| source.name().to_owned()));
    Tool::VERILATOR.run("the bench that counts lines", arguments, folder, LIMIT)?;
    // Started through a shell, because the program is in this folder and not on the `PATH`.
    let shell = Tool {
        program: "sh",
        ..Tool::VERILATOR
    };
    shell.run(
        "the count of lines",
        ["-c", "./obj/bench stimulus"],
        folder,
        LIMIT,
    )?;
    tool::read(&folder.join("coverage.dat"))
}

/// Returns the points of one kind (`v_line` or `v_branch`) and their counts, by file and line.
///
/// A point is `C '\x01f\x02FILE\x01l\x02LINE\x01n\x02COLUMN\x01page\x02KIND/MODULE\x01o\x02COMMENT...' COUNT`; instances of a module have points of their own.
fn kind(text: &str, kind: &str) -> Points {
    let mut points = Points::new();
    for line in text.lines() {
        let Some((keys, times)) = line
            .strip_prefix("C '")
            .and_then(|rest| rest.rsplit_once("' "))
        else {
            continue;
        };
        let key = |name: &str| {
            let mut pairs = keys
                .split('\x01')
                .filter_map(|pair| pair.split_once('\x02'));
            pairs
                .find(|(key, _)| *key == name)
                .map_or("", |(_, value)| value)
        };
        let (file, page) = (key("f"), key("page"));
        let file = file.rsplit('/').next().unwrap_or(file);
        if !page.starts_with(kind) || file == "play.v" {
            continue;
        }
        let name = format!("{file}:{}:{} {}", key("l"), key("n"), key("o"));
        *points.entry(name).or_default() += times.parse().unwrap_or(0);
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_of_instances_are_added_and_other_kinds_are_left_out() {
        let point = |line: u32, page: &str, hierarchy: &str, times: u32| {
            format!(
                "C '\x01f\x02a/b.v\x01l\x02{line}\x01n\x025\x01page\x02{page}\x01o\x02if\x01h\x02{hierarchy}' {times}\n"
            )
        };
        let text = point(3, "v_branch/b", "x", 0)
            + &point(3, "v_branch/b", "y", 2)
            + &point(4, "v_line/b", "x", 1);
        let expected = Points::from([("b.v:3:5 if".to_owned(), 2)]);
        assert_eq!(kind(&text, "v_branch/"), expected);
    }
}
