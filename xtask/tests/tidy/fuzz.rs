//! Test that each decoder listed in a `fuzz.rs` has a cargo-fuzz program, and vice versa.
//!
//! It must also be possible to build the fuzz programs with the locked dependencies.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::{files, name, read};

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

/// Returns the packages of this repository in a lock file, each with its dependencies.
fn locked(lock: &str) -> BTreeMap<&str, BTreeSet<&str>> {
    let packages = lock.split("[[package]]").skip(1);
    let local = packages.filter(|package| !package.contains("\nsource = "));
    let named = local.filter_map(|package| {
        let (name, rest) = package.split_once("name = \"")?.1.split_once('"')?;
        let list = rest.split("dependencies = [").nth(1).unwrap_or_default();
        // If a package has several versions in the lock file, its name is followed by one of them.
        let names = list.split('"').skip(1).step_by(2);
        let names = names.filter_map(|name| name.split(' ').next());
        Some((name, names.collect()))
    });
    named.collect()
}

/// Returns the name of a manifest's package, and its unconditional dependencies.
fn needed(manifest: &str) -> Option<(&str, BTreeSet<&str>)> {
    let name = manifest.split("name = \"").nth(1)?.split('"').next()?;
    let sections = manifest.split("\n[").filter(|section| {
        section.starts_with("dependencies]") || section.starts_with("build-dependencies]")
    });
    let lines = sections.flat_map(|section| section.lines().skip(1));
    let always = lines.filter(|line| !line.starts_with('#') && !line.contains("optional = true"));
    let names = always.filter_map(|line| line.split([' ', '.', '=']).next());
    Some((name, names.filter(|name| !name.is_empty()).collect()))
}

#[test]
fn the_lock_file_of_the_fuzz_programs_has_what_their_packages_need() {
    let manifests: Vec<String> = files("toml").iter().map(|path| read(path)).collect();
    let packages: BTreeMap<_, _> = manifests.iter().filter_map(|text| needed(text)).collect();
    let lock = read(&super::root().join("fuzz/Cargo.lock"));
    let locked = locked(&lock);
    assert!(locked.len() > 10, "{locked:?}");
    for (package, dependencies) in &locked {
        let needed = packages.get(package).into_iter().flatten();
        for name in needed {
            let is_locked = locked.contains_key(name) || !packages.contains_key(name);
            assert!(
                dependencies.contains(name) && is_locked,
                "fuzz/Cargo.lock lacks {name}, which {package} needs; `cargo metadata` in fuzz/ adds it"
            );
        }
    }
}
