//! `cargo xtask gen`: writes the files that are generated from tables.
//!
//! The generators are in the folders of their tables; this command only determines the output files.
//! A test in each of these folders compares the checked-in file with a generated one, so an outdated file is detected.

#[path = "../../mpi-abi/api/header.rs"]
mod header;
#[path = "../../mpi-abi/api/table.rs"]
// The build script of mpi-abi uses the rest of the table.
#[allow(dead_code)]
pub(crate) mod table;

use std::path::Path;

/// Reads a table of the C interface.
pub(crate) fn api(name: &str) -> Result<String, String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../mpi-abi/api")
        .join(name);
    std::fs::read_to_string(&path).map_err(|e| format!("{} cannot be read: {e}", path.display()))
}

/// The functions of the standard.
pub(crate) fn functions() -> Result<table::Functions, String> {
    table::functions(&api("functions.txt")?).map_err(|e| format!("functions.txt, {e}"))
}

/// Regenerates every generated file of the repository.
pub fn run() -> Result<(), String> {
    let abi = Path::new(env!("CARGO_MANIFEST_DIR")).join("../mpi-abi");
    let functions = functions()?;
    let sections =
        table::constants(&api("constants.txt")?).map_err(|e| format!("constants.txt, {e}"))?;
    let path = abi.join("include/mpi.h");
    std::fs::write(&path, header::header(&functions, &sections))
        .map_err(|e| format!("{} cannot be written: {e}", path.display()))?;
    println!("wrote {}", path.display());
    let extensions =
        table::functions(&api("extensions.txt")?).map_err(|e| format!("extensions.txt, {e}"))?;
    let path = abi.join("include/mpi-ext.h");
    std::fs::write(&path, header::extension_header(&extensions))
        .map_err(|e| format!("{} cannot be written: {e}", path.display()))?;
    println!("wrote {}", path.display());
    Ok(())
}
