//! Test of the links between documents: each target must be an existing file, and an existing heading in it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::{files, name, read, root};

fn outside_fences(text: &str) -> impl Iterator<Item = &str> {
    let mut is_inside = false;
    text.lines().filter(move |line| {
        if line.trim_start().starts_with("```") {
            is_inside = !is_inside;
            return false;
        }
        !is_inside
    })
}

/// Returns a line without the text in backticks.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect()
}

/// Returns the targets of a document's links `[text](target)`.
fn targets(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in outside_fences(text) {
        let line = without_code(line);
        for rest in line.split("](").skip(1) {
            if let Some((target, _)) = rest.split_once(')') {
                found.push(target.to_owned());
            }
        }
    }
    found
}

/// Returns the anchors of a document's headings, as GitHub generates them.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = outside_fences(text).filter_map(|line| {
        let heading = line.trim_start_matches('#');
        (line.starts_with('#') && heading.starts_with(' ')).then(|| heading.trim())
    });
    let anchor = |heading: &str| -> String {
        let kept = heading
            .chars()
            .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.flat_map(char::to_lowercase)
            .map(|c| if c == ' ' { '-' } else { c })
            .collect()
    };
    headings.map(anchor).collect()
}

/// Returns the error in a document's link to `target`, if there is one.
fn fault(document: &Path, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path: PathBuf = match file {
        "" => document.to_owned(),
        file => document.parent().unwrap_or(root()).join(file),
    };
    if !path.exists() {
        return Some(format!("{}: there is no {file}", name(document)));
    }
    if anchor.is_empty() || path.extension().is_none_or(|e| e != "md") {
        return None;
    }
    let has = anchors(&read(&path)).contains(anchor);
    (!has).then(|| format!("{}: {target}: there is no such heading", name(document)))
}

#[test]
fn links_lead_to_files_and_headings_that_exist() {
    let mut count = 0;
    let mut faults = Vec::new();
    for path in files("md") {
        for target in targets(&read(&path)) {
            count += 1;
            faults.extend(fault(&path, &target));
        }
    }
    assert!(count > 300, "{count} links: the documents have moved");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn each_question_is_answered_two_clicks_from_the_readme() {
    let readme = targets(&read(&root().join("README.md")));
    assert!(
        readme.iter().any(|target| target == "docs/questions.md"),
        "the README has no link to docs/questions.md"
    );
    let text = read(&root().join("docs/questions.md"));
    let rows: Vec<&str> = text.lines().filter(|line| line.contains("? |")).collect();
    assert!(rows.len() >= 20, "{} questions", rows.len());
    for row in rows {
        assert!(!targets(row).is_empty(), "no page answers {row}");
    }
}

#[test]
fn a_link_without_a_file_or_a_heading_is_found() {
    let readme = root().join("README.md");
    assert_eq!(fault(&readme, "docs/limits.md#networks"), None);
    assert!(fault(&readme, "docs/nothing.md").is_some());
    assert!(fault(&readme, "docs/limits.md#nothing").is_some());
    assert_eq!(
        targets("[a](b.md) `[c](d.md)`\n```\n[e](f.md)\n```\n"),
        ["b.md"]
    );
}
