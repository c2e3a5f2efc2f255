//! Each decoder that a package lists for fuzzing is a program of cargo-fuzz, and each such program is of a listed decoder.

use std::collections::BTreeSet;
use std::path::Path;

use super::{files, name, read};

/// The names in the list `ENTRIES` of a package's `fuzz.rs`.
fn entries(path: &Path) -> Vec<String> {
    let text = read(path);
    let list = text
        .split("ENTRIES: &[Entry] = &[")
        .nth(1)
        .and_then(|rest| rest.split("];").next())
        .unwrap_or_else(|| panic!("{} has no list of entries", name(path)));
    let names = list.split('"').skip(1).step_by(2);
    names.map(str::to_owned).collect()
}

#[test]
fn every_decoder_of_foreign_bytes_is_a_program_of_cargo_fuzz() {
    let sources = files("rs");
    let lists = sources.iter().filter(|path| path.ends_with("src/fuzz.rs"));
    let entries: Vec<String> = lists.flat_map(|path| entries(path)).collect();
    assert!(entries.len() > 20, "{entries:?}");
    let listed: BTreeSet<&str> = entries.iter().map(String::as_str).collect();
    assert_eq!(
        listed.len(),
        entries.len(),
        "two have one name: {entries:?}"
    );
    let programs = sources
        .iter()
        .filter(|path| name(path).starts_with("fuzz/fuzz_targets/"));
    let programs: BTreeSet<&str> = programs
        .filter_map(|path| path.file_stem()?.to_str())
        .collect();
    assert_eq!(listed, programs);
    let manifest = read(&super::root().join("fuzz/Cargo.toml"));
    for name in programs {
        assert!(
            manifest.contains(&format!("name = \"{name}\"")),
            "fuzz/Cargo.toml has no program {name}"
        );
    }
}
