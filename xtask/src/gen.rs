//! `cargo xtask gen`: regenerates the files that are generated from tables.
//!
//! `frames` generates the serial frames' format, `registers` the registers, `plugin_tables` the
//! plugin tables, and `testplan` the tables of the hardware's test plan, from claims and tests.
//! This module only determines which files are written.
//! A test of each generator compares the checked-in files with its output.

use crate::{c_interface, frames, plugin_tables, registers, testplan, workspace};
use mpi_api_tables::header;
use std::path::Path;

/// Regenerates all generated files of the repository.
pub fn run() -> Result<(), String> {
    frames()?;
    registers()?;
    for tables in plugin_tables::ALL {
        rewrite(tables.file, |file, text| tables.regenerated(file, text))?;
    }
    rewrite(testplan::FILE, |_, text| testplan::regenerated(text))?;
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../mpi-abi/include");
    let write = |name: &str, text: String| {
        let path = include.join(name);
        std::fs::write(&path, text)
            .map_err(|e| format!("{} cannot be written: {e}", path.display()))?;
        println!("wrote {}", path.display());
        Ok::<(), String>(())
    };
    let functions = mpi_api_tables::functions()?;
    let constants = mpi_api_tables::constants()?;
    write("mpi.h", header::header(&functions, &constants))?;
    let extensions = mpi_api_tables::extensions()?;
    let types = mpi_api_tables::extension_types()?;
    write("mpi-ext.h", header::extension_header(&extensions, &types))?;
    fortran()
}

fn frames() -> Result<(), String> {
    let format = frames::format()?;
    let regenerated = |file: &str, text: &str| frames::regenerated(&format, file, text);
    frames::FILES
        .iter()
        .try_for_each(|file| rewrite(file, regenerated))
}

/// Regenerates the regions with the registers, in the RTL, the driver and the document,
/// the register files for other tools (such as IP-XACT), and the header of `libhwbarr`.
fn registers() -> Result<(), String> {
    let map = registers::map()?;
    let regenerated = |file: &str, text: &str| registers::regenerated(&map, file, text);
    registers::FILES
        .iter()
        .try_for_each(|file| rewrite(file, regenerated))?;
    for joined in registers::buses::joined()? {
        rewrite(&joined.file, |_, text| joined.regenerated(text))?;
    }
    let header = (c_interface::HEADER, c_interface::header()?);
    for (file, text) in registers::whole_files(&map).into_iter().chain([header]) {
        let path = workspace::root().join(file);
        std::fs::write(&path, text)
            .map_err(|e| format!("{} cannot be written: {e}", path.display()))?;
        println!("wrote {}", path.display());
    }
    Ok(())
}

/// Regenerates the regions of a file of the repository.
fn rewrite(
    file: &str,
    regenerated: impl Fn(&str, &str) -> Result<String, String>,
) -> Result<(), String> {
    let path = workspace::root().join(file);
    let text = std::fs::read_to_string(&path)
        .map_err(|e| format!("{} cannot be read: {e}", path.display()))?;
    std::fs::write(&path, regenerated(file, &text)?)
        .map_err(|e| format!("{} cannot be written: {e}", path.display()))?;
    println!("wrote {}", path.display());
    Ok(())
}

/// Regenerates `mpif.h` and the sources of the Fortran modules.
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
