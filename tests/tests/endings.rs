//! The table in `docs/endings.md` says what is tested.

use std::fs;

use xtask::workspace;

#[test]
fn every_row_of_the_table_of_endings_names_a_test_that_exists() {
    let root = workspace::root();
    let table = fs::read_to_string(root.join("docs/endings.md")).unwrap();
    let sources: String = ["failures", "remote"]
        .iter()
        .map(|name| fs::read_to_string(root.join(format!("tests/tests/{name}.rs"))).unwrap())
        .collect();
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
