//! Generator of the tables in the hardware's test plan: all claims that are proved or refuted, and all HDL tests.
//!
//! The claims are the Rust constants that the proofs use; the tests are parsed from the sources.
//! So if a claim or a test is added, renamed or removed, `cargo xtask gen` updates the plan.
//! The plan's first table, which relates claims to tests, is written manually;
//! each file that it names must exist.

use std::fs;
use std::path::{Path, PathBuf};

use hdl::formal::{Claim, Mutant};
use hdl::{board_claims, channel_claims, eureka_claims, register_claims, toggle_claims};

use crate::regions;
use crate::workspace;

/// The name of the source in the comments that mark the tables' regions.
pub const TABLE: &str = "the claims and tests of hdl";
/// The document that contains the tables.
pub const FILE: &str = "hdl/DV.md";
const FOLDERS: [&str; 2] = ["hdl/tests", "hdl/kit/tests"];

/// Returns the text of the plan with its regions regenerated.
///
/// # Errors
///
/// The error names a file that cannot be read, an unknown region, or a named file that does not exist.
pub fn regenerated(text: &str) -> Result<String, String> {
    every_named_file_is_there(text)?;
    let tests = tests()?;
    regions::regenerated(TABLE, FILE, text, |name| match name {
        "proofs" => Some(proofs()),
        "tests" => Some(tests.clone()),
        _ => None,
    })
}

/// The claims about one design, with a sentence for each.
struct Group {
    of: &'static str,
    claims: &'static [(&'static str, Claim)],
    long: &'static [(&'static str, Claim)],
    hazards: &'static [(&'static str, Claim)],
    mutants: &'static [(Mutant, Claim)],
}

const GROUPS: [Group; 5] = [
    Group {
        of: "version 1",
        claims: toggle_claims::CLAIMS,
        long: toggle_claims::LONG_CLAIMS,
        hazards: toggle_claims::HAZARDS,
        mutants: toggle_claims::MUTANTS,
    },
    Group {
        of: "cascaded boards",
        claims: board_claims::CLAIMS,
        long: board_claims::LONG_CLAIMS,
        hazards: board_claims::HAZARDS,
        mutants: board_claims::MUTANTS,
    },
    Group {
        of: "the eureka line",
        claims: eureka_claims::CLAIMS,
        long: eureka_claims::LONG_CLAIMS,
        hazards: &[],
        mutants: eureka_claims::MUTANTS,
    },
    Group {
        of: "version 2",
        claims: channel_claims::CLAIMS,
        long: channel_claims::LONG_CLAIMS,
        hazards: channel_claims::HAZARDS,
        mutants: channel_claims::MUTANTS,
    },
    Group {
        of: "the register block",
        claims: register_claims::CLAIMS,
        long: register_claims::LONG_CLAIMS,
        hazards: &[],
        mutants: register_claims::MUTANTS,
    },
];

fn proofs() -> Vec<String> {
    let mut lines = vec![
        "| design | claim | verdict | by | runs |".to_owned(),
        "|---|---|---|---|---|".to_owned(),
    ];
    let mut add = |of: &str, sentence: &str, verdict: &str, claim: &Claim, runs: &str| {
        let by = means(claim);
        lines.push(format!("| {of} | {sentence} | {verdict} | {by} | {runs} |"));
    };
    for group in GROUPS {
        for (sentence, claim) in group.claims {
            add(group.of, sentence, "proved", claim, "always");
        }
        for (sentence, claim) in group.long {
            add(group.of, sentence, "proved", claim, "`--long`");
        }
        for (sentence, claim) in group.hazards {
            add(group.of, sentence, "refuted", claim, "known hazard");
        }
    }
    for bus in register_claims::BUSES {
        for (sentence, claim) in bus.claims() {
            add("a front", sentence, "proved", &claim, "always");
        }
    }
    lines.extend([
        String::new(),
        "| design | broken versions, each refuted |".to_owned(),
        "|---|---|".to_owned(),
    ]);
    for group in GROUPS {
        let faults: Vec<_> = group
            .mutants
            .iter()
            .map(|(mutant, _)| mutant.fault)
            .collect();
        lines.push(format!("| {} | {} |", group.of, faults.join("; ")));
    }
    lines
}

/// Returns the method of deciding a claim, as a text for the table.
fn means(claim: &Claim) -> String {
    match claim {
        Claim::Asserts { module, .. } => format!("`{}`", module.file),
        _ => "equality".to_owned(),
    }
}

fn tests() -> Result<Vec<String>, String> {
    let mut lines = vec![
        "| file | test | runs |".to_owned(),
        "|---|---|---|".to_owned(),
    ];
    for folder in FOLDERS {
        for path in sources(&workspace::root().join(folder))? {
            let text = fs::read_to_string(&path)
                .map_err(|e| format!("{} cannot be read: {e}", path.display()))?;
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let file = format!("{}/{name}", folder.trim_start_matches("hdl/"));
            for (test, runs) in tests_of(&text) {
                lines.push(format!(
                    "| `{file}` | {} | {runs} |",
                    test.replace('_', " ")
                ));
            }
        }
    }
    Ok(lines)
}

fn sources(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries =
        fs::read_dir(folder).map_err(|e| format!("{} cannot be read: {e}", folder.display()))?;
    let paths = entries.flatten().map(|entry| entry.path());
    let mut paths: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|e| e == "rs"))
        .collect();
    paths.sort();
    Ok(paths)
}

/// Returns the names of a file's tests, each with the runs that include it ("always" or "`--long`").
fn tests_of(text: &str) -> Vec<(String, &'static str)> {
    let mut found = Vec::new();
    let (mut is_test, mut runs) = (false, "always");
    for line in text.lines() {
        if line == "#[test]" {
            (is_test, runs) = (true, "always");
        } else if line.starts_with("#[ignore") {
            runs = "`--long`";
        } else if let Some(rest) = line.strip_prefix("fn ").filter(|_| is_test) {
            let name = rest.split('(').next().unwrap_or_default();
            found.push((name.to_owned(), runs));
            is_test = false;
        }
    }
    found
}

/// Checks that each Rust, Verilog or Python file that the plan names exists, relative to `hdl` or to the root.
fn every_named_file_is_there(text: &str) -> Result<(), String> {
    let root = workspace::root();
    let named = text.split('`').skip(1).step_by(2);
    let endings = [".rs", ".v", ".py"];
    for path in named.filter(|word| endings.iter().any(|ending| word.ends_with(ending))) {
        let is_path = path.contains('/') && !path.contains(['*', ' ']);
        let places = [root.join("hdl").join(path), root.join(path)];
        if is_path && !places.iter().any(|place| place.exists()) {
            return Err(format!(
                "{FILE} names `{path}`, which is neither below hdl nor below the root"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_found_with_when_they_run() {
        let text = "#[test]\nfn one_is() {\n}\n#[test]\n#[ignore = \"long: cargo xtask test --long\"]\nfn two_is() {\n}\nfn no_test() {\n";
        let found = tests_of(text);
        let expected = [
            ("one_is".to_owned(), "always"),
            ("two_is".to_owned(), "`--long`"),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_file_that_the_plan_names_and_that_is_not_there_is_an_error() {
        let error = regenerated("| a | `tests/no_such_test.rs` | |\n").expect_err("no such file");
        assert!(error.contains("`tests/no_such_test.rs`"), "{error}");
    }
}
