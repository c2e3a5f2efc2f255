//! Tests of plugins in C, compiled by the tests with the public header, and of components in Rust that use the same tables.

mod guests;
mod layout;
mod loading;
mod operations;
mod serving;

use super::{Catalogue, PATH, PREFER};
use mpi_base::param::{Params, Source};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

const INCLUDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../include");
const LINEAR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/plugin/testdata/linear.c");
const EVERY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/plugin/testdata/every.c");
const DENSE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/plugin/testdata/dense.c");

fn compile(source: &Path, options: &[&str], to: &Path) {
    let mut cc = Command::new("cc");
    cc.args([
        "-std=c11",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-pedantic",
        "-I",
        INCLUDE,
    ])
    .args(options);
    let done = cc
        .arg("-o")
        .arg(to)
        .arg(source)
        .output()
        .expect("a C compiler named cc");
    assert!(
        done.status.success(),
        "cc: {}",
        String::from_utf8_lossy(&done.stderr)
    );
}

struct Shelf(TempDir);

impl Shelf {
    fn new() -> Shelf {
        Shelf(tempfile::tempdir().expect("a directory"))
    }

    /// Adds the C plugin `linear.c` as `file`, compiled with these macro definitions.
    fn with(self, file: &str, defines: &[&str]) -> Shelf {
        let options = [&["-shared", "-fPIC"], defines].concat();
        compile(Path::new(LINEAR), &options, &self.0.path().join(file));
        self
    }

    /// Creates a directory with the C plugin `every.c`, which has every operation.
    fn with_every(defines: &[&str]) -> Shelf {
        let shelf = Shelf::new();
        let options = [&["-shared", "-fPIC"], defines].concat();
        let file = shelf.0.path().join("coll_every.so");
        compile(Path::new(EVERY), &options, &file);
        shelf
    }

    /// Creates a directory with the C plugin `dense.c`, which has fast calls.
    fn with_dense(defines: &[&str]) -> Shelf {
        let shelf = Shelf::new();
        let options = [&["-shared", "-fPIC"], defines].concat();
        compile(
            Path::new(DENSE),
            &options,
            &shelf.0.path().join("coll_dense.so"),
        );
        shelf
    }

    fn path(&self) -> PathBuf {
        self.0.path().to_path_buf()
    }

    fn params(&self) -> Params {
        let mut params = Params::default();
        params.set(
            &PATH.about().full_name(),
            &self.path().to_string_lossy(),
            Source::Environment,
        );
        params
    }

    fn gather(&self) -> Catalogue {
        Catalogue::gather(&[], &[], &self.params(), None)
    }

    fn gather_preferring(&self, names: &str) -> Catalogue {
        let mut params = self.params();
        params.set(&PREFER.about().full_name(), names, Source::Environment);
        Catalogue::gather(&[guests::OLD], &[], &params, None)
    }
}
