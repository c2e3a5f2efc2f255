//! Test of the packages that the MPI library links: of the simulator's packages, only the barrier board.
//!
//! The library must not link the simulator, an emulated port, the HTML page or the terminal interface.

use std::collections::BTreeSet;
use std::process::Command;

use super::root;

/// Returns the names of all dependencies of a package.
fn parts(package: &str) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .current_dir(root())
        .args(["tree", "--offline", "--edges", "normal"])
        .args(["--prefix", "none", "--format", "{p}"])
        .args(["--package", package])
        .output()
        .expect("cargo starts");
    let said = String::from_utf8_lossy(&output.stdout);
    let names = said.lines().filter_map(|line| line.split(' ').next());
    names.map(str::to_owned).collect()
}

#[test]
fn the_library_and_its_plugin_link_no_workbench() {
    const WORKBENCH: &[&str] = &[
        "hwbarr",
        "barrier-simulator",
        "barrier-emulation",
        "corosensei",
        "fuser",
        "ratatui",
    ];
    for package in [
        "mpi-abi-library",
        "coll-hwbarr-plugin",
        "coll-hwbarr-openmpi",
    ] {
        let parts = parts(package);
        assert!(
            parts.contains("barrier-board"),
            "{package} links no board, so this test reads the wrong list: {parts:?}"
        );
        let linked: Vec<_> = WORKBENCH
            .iter()
            .filter(|part| parts.contains(**part))
            .collect();
        assert!(linked.is_empty(), "{package} links {linked:?}");
    }
}
