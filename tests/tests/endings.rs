//! Tests that the table in `docs/endings.md` names existing tests.

use std::fs;

use xtask::workspace;

#[test]
fn every_row_of_the_table_of_endings_names_a_test_that_exists() {
    let root = workspace::root();
    let table = fs::read_to_string(root.join("docs/endings.md")).unwrap();
    let sources: String = [
        "tests/tests/dead_jobs.rs",
        "tests/tests/encounters.rs",
        "tests/tests/failures.rs",
        "tests/tests/remote.rs",
        "tests/tests/terminal.rs",
        "mpirun/tests/endings.rs",
        "mpirun/tests/output.rs",
        "mpirun/tests/survival.rs",
    ]
    .iter()
    .map(|name| fs::read_to_string(root.join(name)).unwrap())
    .collect();
    // The sections after the table are about time limits.
    let table = table.split("\n## ").next().unwrap_or_default();
    let rows: Vec<&str> = table
        .lines()
        .filter(|line| line.starts_with("| "))
        .skip(1)
        .collect();
    assert!(rows.len() > 10);
    for row in rows {
        let name = row
            .rsplit('`')
            .nth(1)
            .unwrap_or_else(|| panic!("no test in {row}"));
        assert!(
            sources.contains(&format!("fn {name}()")),
            "there is no test {name}"
        );
    }
}
