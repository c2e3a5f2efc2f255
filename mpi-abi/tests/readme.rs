//! Test of the function table in docs/works.md: it equals the build's list of functions.
//!
//! The README states the same total number of functions.

use std::collections::BTreeMap;
use std::fmt::Write;

const BEGIN: &str = "<!-- functions: begin -->\n";
const END: &str = "<!-- functions: end -->\n";

/// Returns the table with one row per chapter of the standard.
fn table() -> String {
    let mut chapters: BTreeMap<u32, (&str, usize, usize)> = BTreeMap::new();
    for function in mpi_abi::functions() {
        let row = chapters
            .entry(function.chapter)
            .or_insert((function.subject, 0, 0));
        row.1 += usize::from(function.implemented);
        row.2 += 1;
    }
    let mut text = String::from("| chapter of MPI 5.0 | functions that work | |\n|---|---|---|\n");
    for (chapter, (subject, done, all)) in &chapters {
        let verdict = match *done {
            0 => "not yet",
            n if n == *all => "works",
            _ => "in part",
        };
        let _ = writeln!(
            text,
            "| {chapter} {subject} | {done} of {all} | {verdict} |"
        );
    }
    let (done, all) = chapters
        .values()
        .fold((0, 0), |sum, row| (sum.0 + row.1, sum.1 + row.2));
    let _ = writeln!(text, "| all | {done} of {all} | |");
    text
}

#[test]
fn the_documents_say_which_functions_work() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/works.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (before, written, after) = page
        .split_once(BEGIN)
        .and_then(|(before, rest)| {
            let (table, after) = rest.split_once(END)?;
            Some((before, table, after))
        })
        .expect("docs/works.md has its two markers");
    let expected = table();
    if std::env::var_os("README_UPDATE").is_some() {
        let text = format!("{before}{BEGIN}{expected}{END}{after}");
        return std::fs::write(path, text).unwrap();
    }
    assert!(
        written == expected,
        "the table of docs/works.md should be as follows; README_UPDATE=1 writes it:\n{expected}"
    );
    let readme = concat!(env!("CARGO_MANIFEST_DIR"), "/../README.md");
    let readme = std::fs::read_to_string(readme).unwrap();
    let functions = mpi_abi::functions();
    let (done, all) = functions.iter().fold((0, 0), |(done, all), function| {
        (done + u32::from(function.implemented), all + 1)
    });
    assert_eq!(done, all, "the README says that all functions work");
    assert!(readme.contains(&format!("all {all} of MPI 5.0")));
}
