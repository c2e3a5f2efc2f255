//! Coverage of the VHDL: lines and arms of branches by gcov and GHDL's gcc back end, signals by GHDL's dump.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::{Counts, Points, Subject, note_signals};
use serde_json::Value;

use crate::tool::{self, Tool, ToolError};
use crate::vcd;

const LIMIT: Duration = Duration::from_secs(600);

/// Applies the stimulus to the VHDL, without measuring coverage, and returns the outputs.
pub fn trace(subject: &Subject, folder: &Path) -> Result<String, ToolError> {
    let files = write(subject, folder)?;
    let analysis = ["-a", "--std=93"].into_iter().chain(files);
    Tool::GHDL.run("analysis of the VHDL", analysis, folder, LIMIT)?;
    let run = [
        "--elab-run",
        "--std=93",
        "play_tb",
        "--ieee-asserts=disable-at-0",
    ];
    Tool::GHDL.run("the play of the VHDL", run, folder, LIMIT)?;
    tool::read(&folder.join("trace"))
}

/// Writes all source files into the folder; returns the names of the VHDL files in analysis order.
fn write(subject: &Subject, folder: &Path) -> Result<Vec<&'static str>, ToolError> {
    tool::write(&folder.join("stimulus"), &subject.stimulus)?;
    tool::write(&folder.join("play_tb.vhd"), &subject.play.vhdl())?;
    for source in &subject.vhdl {
        tool::write(&folder.join(source.name()), source.text)?;
    }
    let files = subject.vhdl.iter().map(|source| source.name());
    Ok(files.chain(["play_tb.vhd"]).collect())
}

/// Applies the stimulus to the VHDL and returns the coverage.
pub fn measure(subject: &Subject, folder: &Path) -> Result<Counts, ToolError> {
    let files = write(subject, folder)?;
    let counters = ["-a", "--std=93", "-g", "-fprofile-arcs", "-ftest-coverage"];
    let analysis = counters.into_iter().chain(files);
    Tool::GHDL_GCC.run("analysis of the VHDL", analysis, folder, LIMIT)?;
    let linked = ["-e", "--std=93", "-Wl,-lgcov", "-Wl,--coverage", "play_tb"];
    Tool::GHDL_GCC.run("the bench in VHDL", linked, folder, LIMIT)?;
    // Started through a shell, because the program is in this folder and not on the `PATH`.
    let shell = Tool {
        program: "sh",
        ..Tool::GHDL_GCC
    };
    // Before the first edge, values are undefined; the standard packages warn when they compare them.
    let play = "./play_tb --vcd=dump.vcd --ieee-asserts=disable-at-0";
    shell.run("the play of the VHDL", ["-c", play], folder, LIMIT)?;

    let mut counts = Counts {
        trace: tool::read(&folder.join("trace"))?,
        ..Counts::default()
    };
    for source in &subject.vhdl {
        let data = source.name().replace(".vhd", ".gcda");
        let report = Tool::GCOV.run(
            "the counts of the VHDL",
            ["-b", "-c", "--json-format", "--stdout", data.as_str()],
            folder,
            LIMIT,
        )?;
        let report = executed(&report).ok_or(ToolError::Unreadable {
            tool: Tool::GCOV,
            what: "the counts of lines".to_owned(),
        })?;
        let (lines, branches) = points(source.text, &report);
        let of = |points: Points| {
            points
                .into_iter()
                .map(|(name, times)| (format!("{}:{name}", source.name()), times))
        };
        counts.lines.extend(of(lines));
        counts.branches.extend(of(branches));
    }
    note_signals(
        &vcd::read(&folder.join("dump.vcd"))?,
        subject.states,
        &mut counts,
    );
    Ok(counts)
}

/// gcov's counts of a source line: how many times it was executed,
/// and how many times its last conditional jump led into the arm of the branch, and how many times past it.
#[derive(Debug, Clone, Copy, Default)]
struct Line {
    times: u64,
    jump: Option<(u64, u64)>,
}

/// Parses gcov's JSON report; returns the counts by line number.
///
/// Elaboration code (`_ELAB`) is left out: only processes and subprograms count. gcov assigns the code before a function's first statement to the
/// line above that statement; it is left out too.
fn executed(report: &str) -> Option<BTreeMap<usize, Line>> {
    let report: Value = serde_json::from_str(report).ok()?;
    let file = report["files"].as_array()?.first()?;
    let is_code = |name: &str| !name.ends_with("_ELAB");
    let mut starts = BTreeMap::new();
    for function in file["functions"].as_array()? {
        starts.insert(function["name"].as_str()?, function["start_line"].as_u64()?);
    }
    let mut lines = BTreeMap::<usize, Line>::new();
    for entry in file["lines"].as_array()? {
        let (number, times) = (entry["line_number"].as_u64()?, entry["count"].as_u64()?);
        let Some(function) = entry["function_name"].as_str().filter(|name| is_code(name)) else {
            continue;
        };
        let jumps = entry["branches"].as_array()?;
        if jumps.is_empty() && starts.get(function) == Some(&number) {
            continue;
        }
        let line = lines.entry(usize::try_from(number).ok()?).or_default();
        line.times += times;
        // The last conditional jump is that of the condition; the others belong to range checks.
        if let [.., into, past] = jumps.as_slice() {
            line.jump = Some((into["count"].as_u64()?, past["count"].as_u64()?));
        }
    }
    Some(lines)
}

/// An `if` whose end has not been reached: whether its current arm was entered,
/// and how many times none of the arms so far was taken.
struct Open {
    from: usize,
    entered: bool,
    left: u64,
    has_else: bool,
    is_code: bool,
}

/// Returns the counts of the lines, and of the arms of `if`, `elsif` and `else`.
///
/// gcov counts the jump past an arm at the arm's last line, so a line counts as reached only if all arms around it were entered.
/// The arm `otherwise` of an `if` without `else` counts how often no arm was taken.
fn points(text: &str, executed: &BTreeMap<usize, Line>) -> (Points, Points) {
    let (mut lines, mut arms) = (Points::new(), Points::new());
    let mut open = Vec::<Open>::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split("--").next().unwrap_or_default().trim();
        let here = executed.get(&number);
        let ends_arm = line.starts_with("elsif ") || line == "else" || line.starts_with("end if");
        let around = open.len() - usize::from(ends_arm && !open.is_empty());
        if let Some(here) = here.filter(|_| line != "else") {
            let reached = open[..around].iter().all(|arm| arm.entered);
            lines.insert(number.to_string(), if reached { here.times } else { 0 });
        }
        let jump = here.and_then(|here| here.jump);
        let (into, past) = jump.unwrap_or_default();
        if line.starts_with("if ") && !line.ends_with("generate") {
            let is_code = jump.is_some();
            open.push(Open {
                from: number,
                entered: into > 0 || !is_code,
                left: past,
                has_else: false,
                is_code,
            });
            if is_code {
                arms.insert(format!("{number} if"), into);
            }
        } else if let Some(last) = open.last_mut().filter(|_| ends_arm) {
            if line.starts_with("elsif ") {
                (last.entered, last.left) = (into > 0, past);
                arms.insert(format!("{number} elsif"), into);
            } else if line == "else" {
                (last.entered, last.has_else) = (last.left > 0 || !last.is_code, true);
                arms.insert(format!("{number} else"), last.left);
            } else {
                if last.is_code && !last.has_else {
                    arms.insert(format!("{} otherwise", last.from), last.left);
                }
                open.pop();
            }
        }
    }
    (lines, arms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arms_are_counted_by_jumps_and_a_line_in_an_arm_that_is_never_entered_is_not_reached() {
        let text = "if a then\nx;\nend if;\nif b then\ny;\nelse\nz;\nend if;\n";
        let line = |number: u32, times: u32, jump: &str| {
            format!(
                "{{\"branches\": [{jump}], \"count\": {times}, \"line_number\": {number}, \"function_name\": \"p__PROC\"}}"
            )
        };
        let jump = |into: u32, past: u32| format!("{{\"count\": {into}}}, {{\"count\": {past}}}");
        let entries = [
            line(1, 10, &jump(0, 10)),
            line(2, 10, ""),
            line(4, 10, &jump(4, 6)),
            line(5, 4, ""),
            line(7, 6, ""),
        ];
        let function = "{\"name\": \"p__PROC\", \"start_line\": 0}";
        let report = format!(
            "{{\"files\": [{{\"lines\": [{}], \"functions\": [{function}]}}]}}",
            entries.join(", ")
        );
        let report = executed(&report).expect("a report");
        let (lines, arms) = points(text, &report);
        let expected = [("1 if", 0), ("1 otherwise", 10), ("4 if", 4), ("6 else", 6)];
        assert_eq!(
            arms,
            Points::from(expected.map(|(name, times)| (name.to_owned(), times)))
        );
        let expected = [("1", 10), ("2", 0), ("4", 10), ("5", 4), ("7", 6)];
        assert_eq!(
            lines,
            Points::from(expected.map(|(name, times)| (name.to_owned(), times)))
        );
    }
}
