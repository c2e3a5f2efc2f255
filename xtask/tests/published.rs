//! Test that `cargo package` packs the published packages with all required files and no others.
//!
//! This test does not compile them: `cargo publish --dry-run -p fpga-model -p barrier-driver` does,
//! but needs the registry.

use std::path::Path;
use std::process::Command;

const PACKAGES: [&str; 2] = ["fpga-model", "barrier-driver"];

fn cargo(arguments: &[&str], packages: &[&str]) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    let mut command = Command::new(env!("CARGO"));
    command
        .current_dir(root.expect("xtask lies in the workspace"))
        .args(arguments)
        .args(["--offline", "--allow-dirty"])
        .args(packages.iter().flat_map(|package| ["-p", package]));
    let output = command.output().expect("cargo starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
    assert!(!said.contains("manifest has no"), "{said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn the_packages_hold_what_a_user_needs_and_no_more() {
    for package in PACKAGES {
        let list = cargo(&["package", "--list"], &[package]);
        let files: Vec<&str> = list.lines().collect();
        for file in ["LICENSE-APACHE", "LICENSE-MIT", "README.md", "src/lib.rs"] {
            assert!(files.contains(&file), "{package} has no {file}: {list}");
        }
        let known = ["src/", "tests/", "benches/", "examples/"];
        let is_known = |file: &&&str| {
            let is_part = known.iter().any(|folder| file.starts_with(folder));
            is_part || !file.contains('/')
        };
        let strange: Vec<_> = files.iter().filter(|file| !is_known(file)).collect();
        assert!(strange.is_empty(), "{package}: {strange:?}");
    }
}

#[test]
fn the_packages_can_be_made_together() {
    // `cargo package` fails if a dependency has no version or is not published.
    let target = tempfile::tempdir().expect("a folder");
    let target = target.path().display().to_string();
    let arguments = ["package", "--no-verify", "--target-dir", &target];
    cargo(&arguments, &PACKAGES);
}
