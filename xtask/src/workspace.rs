//! Where things are.

use std::path::{Path, PathBuf};

/// The repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap_or(Path::new("."))
}

/// The folder for everything that is made: cargo's, and beside cargo's files ours.
pub fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => root().join(folder),
        None => root().join("target"),
    }
}

/// The C programs that serve as demonstration and as tests.
pub fn programs() -> PathBuf {
    root().join("tests/programs")
}
