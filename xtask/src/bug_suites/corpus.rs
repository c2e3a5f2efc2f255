//! The programs of a suite, each with its requirements and the mistake that it contains.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::ranks::{Ranks, marked};
use super::verdict::functions;
use super::{BugSuitesError, file, folder};
use crate::process;

/// The programs of a suite.
pub(super) struct Corpus {
    pub name: &'static str,
    pub cases: Vec<Case>,
    /// The include folders that all programs need.
    pub includes: Vec<PathBuf>,
    pub shared: Vec<PathBuf>,
}

/// One run of a program, with its arguments.
pub(super) struct Case {
    /// The name, which is unique in the suite.
    pub name: String,
    pub source: PathBuf,
    pub ranks: u32,
    pub arguments: Vec<String>,
    /// The kind of mistake, as the suite calls it; `None` for a correct program.
    pub mistake: Option<String>,
    /// The MPI functions in the suite's description of the mistake, if there is one.
    pub functions: BTreeSet<String>,
    /// For each line that the suite marks as wrong and that not all ranks execute: the ranks that execute it.
    pub culprits: Vec<Ranks>,
}

/// Returns the programs of the MPI Bugs Initiative, after its generators have written them.
pub(super) fn mbi(source: &Path) -> Result<Corpus, BugSuitesError> {
    let made = folder().join("mbi-programs");
    if !made.is_dir() {
        // A run that fails leaves no folder with a part of the programs.
        let new = folder().join("mbi-programs.new");
        let _ = fs::remove_dir_all(&new);
        fs::create_dir_all(&new).map_err(file(&new))?;
        for generator in files(&source.join("scripts/generators"), "Generator.py")? {
            let mut command = Command::new("python3");
            command.arg(&generator).current_dir(&new);
            process::output(&mut command, Duration::from_secs(60))
                .map_err(BugSuitesError::Process)?;
        }
        fs::rename(&new, &made).map_err(file(&made))?;
    }
    let mut cases = Vec::new();
    for path in files(&made, ".c")? {
        let text = fs::read_to_string(&path).map_err(file(&path))?;
        let name = stem(&path);
        for (number, (line, outcome, described)) in headed(&text).into_iter().enumerate() {
            let mut words = line.split_whitespace().skip_while(|word| *word != "-np");
            let ranks = words.nth(1).and_then(|ranks| ranks.parse().ok());
            let ranks = ranks.unwrap_or(2);
            cases.push(Case {
                name: match number {
                    0 => name.clone(),
                    _ => format!("{name}-{number}"),
                },
                source: path.clone(),
                ranks,
                arguments: words
                    .skip_while(|word| *word != "${EXE}")
                    .skip(1)
                    .map(str::to_owned)
                    .collect(),
                mistake: outcome.strip_prefix("ERROR:").map(|kind| {
                    let kind = kind.trim();
                    kind.strip_prefix("IH").unwrap_or(kind).to_owned()
                }),
                functions: functions(described),
                culprits: marked(&text, ranks),
            });
        }
    }
    Ok(Corpus {
        name: "MPI-Bugs-Initiative",
        cases,
        includes: Vec::new(),
        shared: Vec::new(),
    })
}

/// Returns the runs in a program's header, each as command, expected outcome and description.
fn headed(text: &str) -> Vec<(&str, &str, &str)> {
    let lines = text.lines().map(str::trim);
    let inside = lines
        .skip_while(|line| *line != "BEGIN_MBI_TESTS")
        .take_while(|line| *line != "END_MBI_TESTS");
    let lines: Vec<&str> = inside.collect();
    let behind = |at: usize| {
        let line = lines.get(at).filter(|line| line.starts_with('|'));
        line.map_or("", |line| line.trim_start_matches('|').trim())
    };
    let runs = lines.iter().enumerate();
    let runs = runs.filter(|(_, line)| line.starts_with('$'));
    runs.map(|(at, line)| (*line, behind(at + 1), behind(at + 2)))
        .collect()
}

/// Returns the programs of MPI-CorrBench that do not use OpenMP.
pub(super) fn corrbench(source: &Path) -> Result<Corpus, BugSuitesError> {
    let root = source.join("micro-benches/0-level");
    let mut cases = Vec::new();
    for (folder, is_correct) in [
        ("coll", false),
        ("pt2pt", false),
        ("rma", false),
        ("usertypes", false),
        ("conflo/coll", false),
        ("conflo/pt2pt", false),
        ("conflo/rma", false),
        ("conflo/usertypes", false),
        ("correct/coll", true),
        ("correct/datatype", true),
        ("correct/pt2pt", true),
        ("correct/rma", true),
    ] {
        for path in files(&root.join(folder), ".c")? {
            let name = stem(&path);
            let kind = name.split('-').next().unwrap_or(&name).to_owned();
            cases.push(Case {
                name: format!("{}-{name}", folder.replace('/', "-")),
                source: path,
                ranks: 2,
                arguments: Vec::new(),
                mistake: (!is_correct).then_some(kind),
                functions: BTreeSet::new(),
                culprits: Vec::new(),
            });
        }
    }
    Ok(Corpus {
        name: "MPI-CorrBench",
        cases,
        includes: vec![root.join("correct/include")],
        shared: Vec::new(),
    })
}

fn stem(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}

/// Returns the files of a folder whose names end in `end`, sorted.
fn files(folder: &Path, end: &str) -> Result<Vec<PathBuf>, BugSuitesError> {
    let entries = fs::read_dir(folder).map_err(file(folder))?;
    let paths = entries.filter_map(|entry| entry.ok().map(|entry| entry.path()));
    let mut found: Vec<PathBuf> = paths
        .filter(|path| path.to_string_lossy().ends_with(end))
        .collect();
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::headed;

    #[test]
    fn a_header_gives_the_command_and_what_is_expected() {
        let text = "BEGIN_MBI_TESTS\n  $ mpirun -np 3 ${EXE} 1\n  | ERROR: CallMatching\n  | more\nEND_MBI_TESTS\n";
        assert_eq!(
            headed(text),
            [("$ mpirun -np 3 ${EXE} 1", "ERROR: CallMatching", "more")]
        );
    }
}
