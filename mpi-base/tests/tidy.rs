//! Tests of invariants of the sources that the compiler does not check.

use std::fs;
use std::path::{Path, PathBuf};

fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn atomics_come_through_their_one_door() {
    // Exempt from the rule that atomics come from `atomic.rs`: that file and the state page.
    // Only one process stores to a state page, relaxed, so no model needs to check it.
    // The addresses of a race detector's functions are exempt:
    // they are statics that are written only one time.
    // Tests may coordinate their threads in any way.
    let allowed = ["atomic.rs", "race_detectors.rs", "tests.rs"];
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let state_page = src.join("state");
    // The counts in statics are exempt, because loom's atomics cannot be statics;
    // a lock protects what is counted.
    let accelerators = src.join("accelerator");
    let mut found = Vec::new();
    sources(&src, &mut found);
    assert!(found.len() > 10, "the sources have moved");
    for path in found {
        let name = path.file_name().unwrap().to_str().unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let code = text.split("#[cfg(all(test").next().unwrap();
        let code = code.split("#[cfg(test)]\nmod tests {").next().unwrap();
        assert!(
            allowed.contains(&name)
                || path.starts_with(&state_page)
                || path.starts_with(&accelerators)
                || !code.contains("sync::atomic"),
            "{} takes atomics past crate::atomic, where loom cannot stand behind them",
            path.display()
        );
    }
}
