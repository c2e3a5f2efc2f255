//! Test that `cargo xtask` and the other packages use shared crates with the same features.
//!
//! cargo unifies the features of a library over the packages of one build.
//! `cargo xtask` is built alone, and all other packages together. If a library's features differed,
//! the library and all crates that depend on it would be compiled twice.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

fn libraries(selection: &[&str]) -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let output = Command::new(env!("CARGO"))
        .current_dir(root)
        .args(["tree", "--offline", "--prefix", "none"])
        .args(["--format", "{p} {f}"])
        .args(selection)
        .output()
        .expect("cargo starts");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    // `cargo tree` marks lines that it has printed before with a star.
    let bare = |line: &str| line.trim_end_matches(" (*)").to_owned();
    said.lines().map(bare).collect()
}

#[test]
fn what_the_command_is_made_of_has_the_features_that_the_rest_asks_for() {
    let alone = libraries(&["--package", "xtask", "--edges", "normal,build"]);
    let together = libraries(&["--workspace", "--edges", "normal,build,dev"]);
    assert!(alone.len() > 20, "{alone:?}");
    let twice: Vec<_> = alone.difference(&together).collect();
    assert!(
        twice.is_empty(),
        "xtask/Cargo.toml is to ask for more features of these, as the rest of the workspace does: {twice:#?}"
    );
}
