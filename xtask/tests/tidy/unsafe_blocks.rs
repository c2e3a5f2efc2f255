//! Test that `unsafe` does not increase in the functions of the C interface, which take typed arguments.
//!
//! `unsafe_left.txt` has the number of `unsafe` blocks and functions in each file of `mpi-abi/src/api`.
//! `api/args`, which creates the argument types, is not counted.
//! `WORDS_UPDATE=1 cargo test -p xtask --test tidy` lowers these numbers.

use std::collections::BTreeMap;
use std::fs;

use super::{files, name, read, root};

/// The folder that contains the functions of the C interface.
const FUNCTIONS: &str = "mpi-abi/src/api/";
/// The folder of the argument types, which is not counted.
const ARGUMENTS: &str = "mpi-abi/src/api/args/";
const LEFT: &str = "xtask/tests/tidy/unsafe_left.txt";

/// Returns the number of `unsafe` blocks and functions in a source, without comments and strings.
fn count(text: &str) -> usize {
    let code = |line: &str| -> String {
        let outside: Vec<&str> = line.split('"').step_by(2).collect();
        let line = outside.join("\"");
        line.split("//").next().unwrap_or_default().to_owned()
    };
    let uses = |line: &str| line.matches("unsafe {").count() + line.matches("unsafe fn").count();
    text.lines().map(|line| uses(&code(line))).sum()
}

fn left() -> BTreeMap<String, usize> {
    let text = read(&root().join(LEFT));
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let line = |line: &str| {
        let (file, count) = line.split_once(" | ").expect("FILE | COUNT");
        (file.to_owned(), count.parse().expect("a count"))
    };
    lines.map(line).collect()
}

#[test]
fn unsafe_code_in_the_functions_of_the_interface_becomes_less() {
    let mut counts = BTreeMap::new();
    for path in files("rs") {
        let name = name(&path);
        if name.starts_with(FUNCTIONS) && !name.starts_with(ARGUMENTS) {
            let count = count(&read(&path));
            if count > 0 {
                counts.insert(name, count);
            }
        }
    }
    let left = left();
    let more = |(file, count): (&String, &usize)| {
        let allowed = left.get(file).copied().unwrap_or(0);
        let sentence =
            format!("{file}: {count} blocks and functions are unsafe, {allowed} were left");
        (*count > allowed).then_some(sentence)
    };
    let more: Vec<String> = counts.iter().filter_map(more).collect();
    assert!(
        more.is_empty(),
        "{}\nThe types of {ARGUMENTS} are the arguments of safe functions; the build script makes them.",
        more.join("\n")
    );
    if counts != left {
        if std::env::var_os("WORDS_UPDATE").is_none() {
            panic!(
                "{LEFT} is out of date, because unsafe code has become less: WORDS_UPDATE=1 cargo test -p xtask --test tidy"
            );
        }
        let mut text = String::from(
            "# What is left of unsafe blocks and functions in the functions of the C interface. These numbers only fall.\n# FILE | COUNT\n",
        );
        for (file, count) in &counts {
            text.push_str(&format!("{file} | {count}\n"));
        }
        fs::write(root().join(LEFT), text).expect("unsafe_left.txt");
    }
}

#[test]
fn unsafe_code_is_counted_without_comments_and_strings() {
    let text = "// unsafe { a comment }\nlet text = \"unsafe { a string }\";\nunsafe fn f() { unsafe { g() } }\n";
    assert_eq!(count(text), 2);
}
