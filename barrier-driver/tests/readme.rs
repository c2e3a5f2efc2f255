//! Checks the README's tables against the code: every port's syntax is listed, and every hazard names an existing test.

use barrier_driver::ports::PORTS;
use std::fs;
use std::path::Path;

fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("a workspace")
}

fn readme() -> String {
    fs::read_to_string(root().join("barrier-driver/README.md")).expect("a README")
}

#[test]
fn every_port_is_in_the_table_with_its_text() {
    let readme = readme();
    for kind in PORTS {
        assert!(
            readme.contains(&format!("| `{}` |", kind.syntax)),
            "{kind:?}"
        );
        let lines = readme.lines();
        assert!(
            lines.clone().any(|line| line == kind.channels_syntax),
            "{kind:?}"
        );
    }
}

/// Returns the concatenated sources that contain the tests of the hazards.
fn sources() -> String {
    let folders = [
        "barrier-driver/src",
        "barrier-driver/src/ports",
        "barrier-driver/tests",
        "coll-hwbarr/src/tests",
        "sim/simulator/src/faults",
        "sim/emulation/tests/emulated",
        "tests/tests",
    ];
    let files = folders.iter().flat_map(|folder| {
        let entries = fs::read_dir(root().join(folder)).expect("a folder");
        entries.map(|entry| entry.expect("a file").path())
    });
    let sources = files.filter(|file| file.extension().is_some_and(|e| e == "rs"));
    sources
        .map(|file| fs::read_to_string(file).expect("a source"))
        .collect()
}

#[test]
fn every_hazard_names_a_test_that_exists() {
    let (readme, sources) = (readme(), sources());
    let table = readme.split("## Hazards").nth(1).expect("the table");
    let rows: Vec<_> = table
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| hazard"))
        .collect();
    assert!(rows.len() > 20, "{} rows", rows.len());
    for row in rows {
        let tests = row
            .trim_end_matches(" |")
            .rsplit(" | ")
            .next()
            .unwrap_or("");
        let names: Vec<_> = tests
            .split(", ")
            .map(|name| name.trim_matches('`'))
            .collect();
        for name in names {
            let there = [format!("fn {name}("), format!("fn {name}<")];
            assert!(
                there.iter().any(|f| sources.contains(f)),
                "no test {name} for: {row}"
            );
        }
    }
}
