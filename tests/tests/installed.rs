//! Tests that an installation does not contain certain files and paths.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use tests::shipped_installation;
use xtask::workspace;

/// Adds all regular files below a folder to `found`.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap() {
            kind if kind.is_dir() => files(&entry.path(), found),
            kind if kind.is_file() => found.push(entry.path()),
            _ => {}
        }
    }
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn nothing_installed_names_a_folder_of_the_builder() {
    let cargo_home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo_home = cargo_home
        .or_else(|| std::env::home_dir().map(|home| home.join(".cargo")))
        .expect("cargo has a home");
    let mut found = Vec::new();
    files(shipped_installation(), &mut found);
    assert!(found.len() > 5, "the installation is elsewhere");
    for folder in [workspace::root(), &cargo_home.join("registry")] {
        let name = folder.as_os_str().as_bytes();
        for file in &found {
            let bytes = fs::read(file).unwrap();
            assert!(
                !bytes.windows(name.len()).any(|window| window == name),
                "{} names {}",
                file.display(),
                folder.display()
            );
        }
    }
}
