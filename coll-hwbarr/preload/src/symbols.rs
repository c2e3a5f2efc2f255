//! The names by which programs call a barrier.
#![allow(unsafe_code)]

use coll_hwbarr_foreign::barrier::{self, Passed};
use coll_hwbarr_foreign::library::{Family, Handle, Library, library};
use std::ffi::c_int;
use std::sync::OnceLock;

/// What a process without an MPI library gets: it has none to tell it by.
const NO_LIBRARY: c_int = 16;

fn barrier(library: &'static Library, comm: Handle) -> c_int {
    static WANTED: OnceLock<bool> = OnceLock::new();
    if *WANTED.get_or_init(barrier::is_wanted) && barrier::is_like_world(library, comm) {
        match barrier::pass(library) {
            Ok(Passed::Here) => return 0,
            Ok(Passed::Software) => {}
            Err(reason) => return library.fail(comm, &reason),
        }
    }
    // SAFETY: what the program has called, with its own argument.
    unsafe { (library.functions.barrier)(comm) }
}

fn found() -> Result<&'static Library, c_int> {
    library().map_err(|reason| {
        eprintln!("portcullis: MPI_Barrier is called, but {reason}");
        NO_LIBRARY
    })
}

/// `int MPI_Barrier(MPI_Comm)`.
///
/// # Safety
/// As MPI says.
// SAFETY: the name is MPI's, to stand in front of it is what this file is for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Barrier(comm: Handle) -> c_int {
    match found() {
        Ok(library) => barrier(library, library.handle(comm)),
        Err(code) => code,
    }
}

/// A Fortran program's barrier.
///
/// # Safety
/// `comm` is readable; `error` is writable, or null where the argument is absent.
unsafe fn of_fortran(comm: *const c_int, error: *mut c_int) {
    let code = match found() {
        // SAFETY: the caller's promise.
        Ok(library) => match of_integer(library, unsafe { comm.read() }) {
            Ok(comm) => barrier(library, comm),
            Err(code) => code,
        },
        Err(code) => code,
    };
    if !error.is_null() {
        // SAFETY: the caller's promise.
        unsafe { error.write(code) };
    }
}

/// The handle of C behind Fortran's integer.
fn of_integer(library: &Library, comm: c_int) -> Result<Handle, c_int> {
    match library.family {
        // The same bits.
        Family::Mpich => Ok(library.handle(comm as Handle)),
        Family::OpenMpi | Family::Standard => {
            let name = match library.family {
                Family::OpenMpi => c"PMPI_Comm_f2c",
                _ => c"PMPI_Comm_fromint",
            };
            let convert = library.symbol(name).map_err(|reason| {
                eprintln!("portcullis: {reason}");
                NO_LIBRARY
            })?;
            // SAFETY: both take the integer and return the handle.
            Ok(unsafe {
                std::mem::transmute::<*mut std::ffi::c_void, unsafe extern "C" fn(c_int) -> Handle>(
                    convert,
                )(comm)
            })
        }
    }
}

macro_rules! fortran {
    ($($name:ident)*) => {$(
        /// A name that Fortran compilers give to `MPI_Barrier`.
        ///
        /// # Safety
        /// As MPI says.
        // SAFETY: the name is MPI's, to stand in front of it is what this file is for.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case)]
        pub unsafe extern "C" fn $name(comm: *const c_int, error: *mut c_int) {
            // SAFETY: the program's arguments.
            unsafe { of_fortran(comm, error) }
        }
    )*};
}

fortran! { mpi_barrier mpi_barrier_ mpi_barrier__ MPI_BARRIER mpi_barrier_f08_ }
