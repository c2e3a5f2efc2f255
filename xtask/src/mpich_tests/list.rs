//! Parser of the file `testlist` of a folder of MPICH's tests.
//!
//! A line is `PROGRAM RANKS [key=value...]`. `arg` may occur several times; with `resultTest`
//! the program must fail; with `strict=FALSE` it requires extensions of the standard.
//! `#` begins a comment. Other keys are for MPICH's own settings.

use std::fmt;

/// One run of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    pub program: String,
    pub ranks: u32,
    pub arguments: Vec<String>,
    /// True if the exit code must not be 0.
    pub must_fail: bool,
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "on {} processes", self.ranks)?;
        match self.arguments.is_empty() {
            true => Ok(()),
            false => write!(f, " with {}", self.arguments.join(" ")),
        }
    }
}

/// Returns the runs of a list, grouped by program;
/// runs that differ only in MPICH's own settings are merged.
pub fn parse(text: &str) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for run in text.lines().filter_map(line) {
        if runs.contains(&run) {
            continue;
        }
        let behind = runs.iter().rposition(|other| other.program == run.program);
        runs.insert(behind.map_or(runs.len(), |at| at + 1), run);
    }
    runs
}

/// Parses a line; returns `None` for a comment, a subfolder, or a test of extensions of the standard.
fn line(line: &str) -> Option<Run> {
    let line = line.split('#').next()?;
    let mut words = line.split_whitespace();
    let program = words.next()?.to_owned();
    let ranks = words.next()?.parse().ok()?;
    let options = || words.clone().filter_map(|word| word.split_once('='));
    let is_beyond =
        |(key, value): (&str, &str)| key == "strict" && value.eq_ignore_ascii_case("false");
    if options().any(is_beyond) {
        return None;
    }
    let arguments = options().filter(|(key, _)| *key == "arg");
    Some(Run {
        program,
        ranks,
        arguments: arguments.map(|(_, value)| value.to_owned()).collect(),
        must_fail: options().any(|(key, _)| key == "resultTest"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_its_runs() {
        let text = "# tests\nring 2\nring 4 arg=-n=3 arg=7 env=MPIR_CVAR_X=1\nother 1\nring 2 env=MPIR_CVAR_Y=2\n\
                    more 3 strict=FALSE\nend 2 resultTest=TestStatus # so it says\nfolder\n";
        let runs = parse(text);
        let shown: Vec<String> = runs
            .iter()
            .map(|run| format!("{} {run}", run.program))
            .collect();
        assert_eq!(
            shown,
            [
                "ring on 2 processes",
                "ring on 4 processes with -n=3 7",
                "other on 1 processes",
                "end on 2 processes"
            ]
        );
        assert_eq!(
            runs.iter().map(|run| run.must_fail).collect::<Vec<_>>(),
            [false, false, false, true]
        );
    }
}
