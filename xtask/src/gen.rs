//! `cargo xtask gen`: writes the files that are generated from tables.
//!
//! The generators are in the folders of their tables; this command only determines the output files.
//! A test in each of these folders compares the checked-in file with a generated one, so an outdated file is detected.

#[path = "../../mpi-abi/api/header.rs"]
mod header;
#[path = "../../mpi-abi/api/table.rs"]
// The build script of mpi-abi uses the rest of the table.
#[allow(dead_code)]
mod table;

use std::path::Path;

/// Regenerates every generated file of the repository.
pub fn run() -> Result<(), String> {
    let abi = Path::new(env!("CARGO_MANIFEST_DIR")).join("../mpi-abi");
    let read = |name: &str| {
        let path = abi.join("api").join(name);
        std::fs::read_to_string(&path)
            .map_err(|e| format!("{} cannot be read: {e}", path.display()))
    };
    let functions =
        table::functions(&read("functions.txt")?).map_err(|e| format!("functions.txt, {e}"))?;
    let sections =
        table::constants(&read("constants.txt")?).map_err(|e| format!("constants.txt, {e}"))?;
    let path = abi.join("include/mpi.h");
    std::fs::write(&path, header::header(&functions, &sections))
        .map_err(|e| format!("{} cannot be written: {e}", path.display()))?;
    println!("wrote {}", path.display());
    let extensions =
        table::functions(&read("extensions.txt")?).map_err(|e| format!("extensions.txt, {e}"))?;
    let path = abi.join("include/mpi-ext.h");
    std::fs::write(&path, header::extension_header(&extensions))
        .map_err(|e| format!("{} cannot be written: {e}", path.display()))?;
    println!("wrote {}", path.display());
    fortran()
}

/// Regenerates `mpif.h` and the source of the Fortran modules.
fn fortran() -> Result<(), String> {
    let fortran = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fortran");
    let tables = mpi_fortran_generate::table::read(&fortran.join("api"))?;
    for (name, text) in mpi_fortran_generate::files(&tables) {
        let path = fortran.join(name);
        std::fs::write(&path, text)
            .map_err(|e| format!("{} cannot be written: {e}", path.display()))?;
        println!("wrote {}", path.display());
    }
    Ok(())
}
