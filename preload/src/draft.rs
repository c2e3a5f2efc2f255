//! Detection of a library with the constants of an ABI draft instead of the standard ABI.
//!
//! Some libraries were built before the constants were final, but report ABI version 1.0.
//! The error handler of `MPI_FILE_NULL` is `MPI_ERRORS_RETURN` in every library
//! (MPI 5.0, section 14.7). The constant is 0x143 in the standard ABI and 0x142 in the draft.
//! The draft also differs in `MPI_ERRORS_ABORT`, file seek positions and three attributes.
#![allow(unsafe_code)]

use coll_hwbarr_foreign::library::{Family, Library, of_program};
use std::ffi::c_int;
use std::fmt::Write as _;
use std::path::Path;

const FILE_NULL: usize = 0x118;
const ERRORS_RETURN: usize = 0x143;

/// Compares the library's constants after `MPI_Init`; rank 0 warns about a draft.
pub fn look() {
    let Ok(library) = of_program() else { return };
    if library.family != Family::Standard || !is_first(library) {
        return;
    }
    if let Some(found) = errors_return(library).filter(|found| *found != ERRORS_RETURN) {
        printable::eprintln!(
            "{}",
            said(&library.version(), library.path().as_deref(), found)
        );
    }
}

fn is_first(library: &Library) -> bool {
    let mut rank: c_int = -1;
    // SAFETY: MPI is initialised, `comm_world` is the library's, and `rank` is a live local.
    let code =
        unsafe { (library.functions.comm_rank)(library.constants.comm_world, &raw mut rank) };
    code == 0 && rank == 0
}

/// Returns the library's value of `MPI_ERRORS_RETURN`; `None` if the library's call fails.
fn errors_return(library: &Library) -> Option<usize> {
    type Get = unsafe extern "C" fn(usize, *mut usize) -> c_int;
    let get = library.symbol(c"PMPI_File_get_errhandler").ok()?;
    // SAFETY: the standard defines the signature of the function with this name.
    let get = unsafe { std::mem::transmute::<*mut std::ffi::c_void, Get>(get) };
    let mut found = 0;
    // SAFETY: `MPI_FILE_NULL` is a valid argument, and `found` is a live local.
    let code = unsafe { get(FILE_NULL, &raw mut found) };
    (code == 0).then_some(found)
}

fn said(version: &str, path: Option<&Path>, found: usize) -> String {
    let version = version.lines().next().unwrap_or_default();
    let mut said = String::from("portcullis: ");
    let name = path.map_or("libmpi_abi.so.1".into(), |path| path.to_string_lossy());
    let _ = write!(
        said,
        "{name} ({version}) has constants of a draft of the standard ABI: its MPI_ERRORS_RETURN is {found:#x}, that of MPI 5.0 is \
         {ERRORS_RETURN:#x}. Error handlers, MPI_SEEK_SET and some attributes mean something else there"
    );
    let own = path
        .and_then(Path::parent)
        .map(|folder| folder.join("libmpi.so.12"));
    if let Some(own) = own.filter(|own| own.is_file()) {
        let _ = write!(
            said,
            "; on the library's own ABI they do not: mpirun --on {}",
            own.display()
        );
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_is_reported_with_its_file_and_the_workaround() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("libmpi_abi.so.1");
        let told = said("Some MPI 1.2\nof a day", Some(&file), 0x142);
        assert!(
            told.contains("(Some MPI 1.2) has constants of a draft"),
            "{told}"
        );
        assert!(told.contains("0x142") && !told.contains("--on"), "{told}");
        let own = folder.path().join("libmpi.so.12");
        std::fs::write(&own, "").unwrap();
        let told = said("", Some(&file), 0x142);
        assert!(
            told.ends_with(&format!("mpirun --on {}", own.display())),
            "{told}"
        );
    }
}
