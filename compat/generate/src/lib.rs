//! Code generator of the compatibility libraries. Its inputs are tables of functions and constants.
//!
//! A function whose parameters the tables describe needs no handwritten code.
//! For any other function, the build fails until its parameters are described in the tables,
//! or until the function is written by hand in `compat/src/handwritten`.
//! The build scripts of `compat` and of the libraries use this package.
//! The tests use it too: their mock library is generated from the same tables.
#![forbid(unsafe_code)]

pub mod backend;
pub mod direction;
pub mod entries;
pub mod fallbacks;
pub mod families;
pub mod mock;
pub mod sides;
pub mod tables;

use direction::Below;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Returns the root of the repository, for a package `depth` directories below it.
pub fn root(depth: usize) -> Result<PathBuf, String> {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").ok_or("CARGO_MANIFEST_DIR is not set")?;
    let root = Path::new(&package).ancestors().nth(depth);
    Ok(root.ok_or("the package has no such parent")?.to_owned())
}

/// Writes a generated file to `OUT_DIR`.
pub fn write(name: &str, text: &str) -> Result<(), String> {
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    let path = out.join(name);
    std::fs::write(&path, text).map_err(|e| format!("{} cannot be written: {e}", path.display()))
}

/// Returns the names of the handwritten functions for this direction, each with its module.
pub fn by_hand(root: &Path, below: Below) -> Result<BTreeMap<String, &'static str>, String> {
    let own = match below {
        Below::Standard => "standard_below",
        Below::Foreign => "foreign_below",
    };
    let mut found = BTreeMap::new();
    for module in ["handwritten", own] {
        found.extend(
            written_in(root, module)?
                .into_iter()
                .map(|name| (name, module)),
        );
    }
    Ok(found)
}

/// Returns the names of all `pub unsafe fn MPI_X<F: Family>` in `compat/src/MODULE`.
pub fn written_in(root: &Path, module: &str) -> Result<BTreeSet<String>, String> {
    let folder = root.join("compat/src").join(module);
    println!("cargo:rerun-if-changed={}", folder.display());
    let listed = std::fs::read_dir(&folder)
        .map_err(|e| format!("{} cannot be listed: {e}", folder.display()))?;
    let mut found = BTreeSet::new();
    for entry in listed {
        let path = entry.map_err(|e| e.to_string())?.path();
        if path.is_dir() {
            continue;
        }
        let text = std::fs::read_to_string(&path)
            .map_err(|e| format!("{} cannot be read: {e}", path.display()))?;
        // The function name precedes each `<F: Family>`.
        let heads = text.split("<F:").map(|head| {
            let start = head.rfind(|c: char| !c.is_alphanumeric() && c != '_');
            head[start.map_or(0, |i| i + 1)..].trim()
        });
        let is_of_mpi = |name: &&str| name.starts_with("MPI_") || name.starts_with("MPIX_");
        found.extend(heads.filter(is_of_mpi).map(str::to_string));
    }
    Ok(found)
}
