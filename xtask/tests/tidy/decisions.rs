//! Test of the format of the decision records (`docs/adr`).
//!
//! A record must have title, status, date, sections and short lines; the index must have a row for it.

use std::fs;

use super::{read, root};

/// Maximum length of a line, in characters.
const LONGEST: usize = 300;

/// The sections in order; true if every record must have the section.
const SECTIONS: &[(&str, bool)] = &[
    ("Context", true),
    ("Decision", true),
    ("Alternatives", false),
    ("Consequences", true),
    ("Measured", false),
];

/// Returns the value of a field in the head of a record, such as `* Date: 2026-11-21`.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let head = text.split("\n## ").next().unwrap_or(text);
    let mut lines = head.lines();
    lines.find_map(|line| {
        line.strip_prefix("* ")?
            .strip_prefix(name)?
            .strip_prefix(": ")
    })
}

/// Returns true for a date such as 2026-11-21.
fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    let digits = |part: &&str| part.bytes().all(|byte| byte.is_ascii_digit());
    lengths == [4, 2, 2] && parts.iter().all(digits)
}

/// Returns a sentence for each error in the format of a record.
fn faults(text: &str, number: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let number = number.trim_start_matches('0');
    if !text.starts_with(&format!("# {number}. ")) {
        faults.push(format!("the title does not begin with \"# {number}. \""));
    }
    if !field(text, "Status").is_some_and(|status| {
        ["accepted", "amended", "replaced"]
            .iter()
            .any(|word| status.starts_with(word))
    }) {
        faults.push("no status: accepted, amended or replaced".into());
    }
    if !field(text, "Date").is_some_and(is_date) {
        faults.push("no date".into());
    }
    let found: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("## "))
        .collect();
    let due = SECTIONS
        .iter()
        .filter(|(name, always)| *always || found.contains(name))
        .map(|(name, _)| *name);
    let due: Vec<&str> = due.collect();
    if found != due {
        faults.push(format!("its sections are {found:?} and not {due:?}"));
    }
    for (line, number) in text.lines().zip(1..) {
        let length = line.chars().count();
        if length > LONGEST {
            faults.push(format!("line {number} has {length} characters"));
        }
    }
    faults
}

#[test]
fn decisions_have_one_form_and_are_in_the_index_with_their_date() {
    let folder = root().join("docs/adr");
    let index = read(&folder.join("README.md"));
    let mut wrong = Vec::new();
    let mut count = 0;
    for entry in fs::read_dir(&folder).expect("the decisions") {
        let path = entry.expect("a file").path();
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        if file == "README.md" {
            continue;
        }
        count += 1;
        let text = read(&path);
        let number = file.split('-').next().unwrap_or_default();
        wrong.extend(
            faults(&text, number)
                .into_iter()
                .map(|fault| format!("{file}: {fault}")),
        );
        let row = index
            .lines()
            .filter(|line| line.starts_with(&format!("| {} |", number.trim_start_matches('0'))))
            .find(|line| line.contains(&format!("]({file})")));
        let date = field(&text, "Date").unwrap_or("no date");
        if !row.is_some_and(|row| row.ends_with(&format!("| {date} |"))) {
            wrong.push(format!("{file}: the index has no row with {date}"));
        }
    }
    assert!(count > 40, "the decisions have moved");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_decision_without_a_part_of_the_form_is_found() {
    let whole = "# 7. A choice\n\n* Status: accepted\n* Date: 2026-11-21\n\n## Context\n\n## Decision\n\n## Consequences\n";
    assert_eq!(faults(whole, "0007"), Vec::<String>::new());
    for (part, other) in [
        ("# 7.", "# 8."),
        ("accepted", "perhaps"),
        ("2026-11-21", "today"),
        ("## Context", "**Context.**"),
        ("## Consequences", &"word ".repeat(70)),
    ] {
        assert!(
            !faults(&whole.replace(part, other), "0007").is_empty(),
            "{part}"
        );
    }
}
