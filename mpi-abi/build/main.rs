//! Build script: generates types, constants and exported symbols of the C interface.
//!
//! The inputs are the tables and the implementations in `src/api`.

mod arguments;
mod rust;

use rust::Implementation;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn main() -> Result<(), String> {
    println!("cargo:rerun-if-changed=src/api");

    let functions = mpi_api_tables::functions()?;
    let extensions = mpi_api_tables::extensions()?;
    let mut sections = mpi_api_tables::constants()?;
    sections.extend(mpi_api_tables::extension_types()?);
    let mut found = BTreeMap::new();
    find_implementations(Path::new("src/api"), "crate::api", &mut found)?;

    let known = |name: &str| {
        if name.starts_with("MPIX_") {
            return extensions.functions.iter().any(|f| f.name == name);
        }
        let name = PARTS.iter().find_map(|part| name.strip_prefix(part));
        let name = name.map(|x| format!("MPI_{x}")).unwrap_or_default();
        functions.functions.iter().any(|f| f.name == name)
    };
    if let Some(name) = found.keys().find(|name| !known(name)) {
        return Err(format!(
            "{name} is implemented in src/api but is not a function of api/functions.txt or api/extensions.txt"
        ));
    }

    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    let write = |name: &str, text: String| {
        let path = out.join(name);
        std::fs::write(&path, text)
            .map_err(|e| format!("{} cannot be written: {e}", path.display()))
    };
    write("abi.rs", rust::types(&sections))?;
    let exports = rust::Exports::new(&functions, &extensions, &sections, &found);
    write("functions.rs", exports.list())?;
    write("exports.rs", exports.symbols())
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|e| format!("{} cannot be read: {e}", path.display()))
}

/// The name prefixes of implementations: a function of MPI or of an extension, the plan of a
/// collective, the fast path of a blocking collective, the fast path of a trivial call,
/// and the execution of a call in its lane.
const PARTS: [&str; 6] = ["MPI_", "MPIX_", "plan_", "fast_", "trivial_", "lane_"];

/// Records the path of each public function with a prefix in [`PARTS`] in a module folder.
fn find_implementations(
    dir: &Path,
    module: &str,
    found: &mut BTreeMap<String, Implementation>,
) -> Result<(), String> {
    let entries =
        std::fs::read_dir(dir).map_err(|e| format!("{} cannot be listed: {e}", dir.display()))?;
    for entry in entries {
        let path = entry
            .map_err(|e| format!("{} cannot be listed: {e}", dir.display()))?
            .path();
        let stem = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if path.is_dir() {
            find_implementations(&path, &format!("{module}::{stem}"), found)?;
        } else if path.extension().is_some_and(|e| e == "rs") {
            let module = if stem == "mod" {
                module.to_string()
            } else {
                format!("{module}::{stem}")
            };
            for line in read(&path)?.lines() {
                let (is_safe, rest) = match line.strip_prefix("pub unsafe fn ") {
                    Some(rest) => (false, rest),
                    None => (true, line.strip_prefix("pub fn ").unwrap_or_default()),
                };
                let end = rest
                    .find(|c: char| !c.is_alphanumeric() && c != '_')
                    .unwrap_or(rest.len());
                let name = &rest[..end];
                if PARTS.iter().any(|part| name.starts_with(part)) {
                    let path = format!("{module}::{name}");
                    found.insert(name.to_string(), Implementation { path, is_safe });
                }
            }
        }
    }
    Ok(())
}
