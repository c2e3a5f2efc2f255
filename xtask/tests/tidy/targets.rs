//! Test that a library or program without tests has `test = false` in its `Cargo.toml`;
//! otherwise cargo would compile it once more as an empty test program.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{name, read, root};

/// Returns the root files of those libraries and programs that cargo also builds as test programs.
fn test_programs() -> Vec<PathBuf> {
    let output = Command::new(env!("CARGO"))
        .current_dir(root())
        .args([
            "metadata",
            "--offline",
            "--no-deps",
            "--format-version",
            "1",
        ])
        .output()
        .expect("cargo starts");
    let all: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let packages = all["packages"].as_array().expect("packages");
    let targets = packages
        .iter()
        .flat_map(|package| package["targets"].as_array().expect("targets"));
    targets
        .filter(|target| target["test"] == true)
        .map(|target| PathBuf::from(target["src_path"].as_str().expect("a path")))
        .filter(|path| path.components().any(|part| part.as_os_str() == "src"))
        .collect()
}

fn has_test(source: &Path) -> bool {
    let text = read(source);
    text.contains("#[test]") || text.contains("proptest! {")
}

/// Returns true if any file of this crate has a test.
fn is_tested(at: &Path) -> bool {
    let folder = at.parent().expect("a folder");
    let is_alone = folder.ends_with("bin");
    if has_test(at) || is_alone {
        return has_test(at);
    }
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() && !path.ends_with("bin") {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") && has_test(&path) {
                return true;
            }
        }
    }
    false
}

#[test]
fn no_test_program_is_compiled_without_a_test() {
    let programs = test_programs();
    assert!(programs.len() > 20, "{programs:?}");
    let empty: Vec<_> = programs.iter().filter(|at| !is_tested(at)).collect();
    let empty: Vec<_> = empty.into_iter().map(|at| name(at)).collect();
    assert!(
        empty.is_empty(),
        "these have no tests; write `test = false` under [lib] or [[bin]] in their Cargo.toml: {empty:#?}"
    );
}
