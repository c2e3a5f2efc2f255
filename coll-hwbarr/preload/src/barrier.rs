//! `MPI_Barrier`: the hardware's where a port is set, else the library's.
#![allow(unsafe_code)]

use crate::names;
use crate::next::{NOT_THERE, Next, absent};
use crate::watch::said::{Round, Said};
use crate::watch::{fortran, record};
use coll_hwbarr_foreign::barrier::{self, Passed};
use coll_hwbarr_foreign::library::{Family, Handle, Library, of_program};
use mpi_core::coll::CallId;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::OnceLock;

static NEXT: Next = Next::new(c"MPI_Barrier");

/// Goes on to the next function, or through the hardware.
fn pass(library: &'static Library, comm: Handle) -> c_int {
    static WANTED: OnceLock<bool> = OnceLock::new();
    if *WANTED.get_or_init(barrier::is_wanted) && barrier::is_like_world(library, comm) {
        match barrier::pass(library) {
            Ok(Passed::Here) => return 0,
            Ok(Passed::Software) => {}
            Err(reason) => return library.fail(comm, &reason),
        }
    }
    let Some(next) = NEXT.get() else {
        return absent(NEXT.name());
    };
    // SAFETY: the standard says what a function of this name is; a handle is one register in all ABIs.
    let next =
        unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn(Handle) -> c_int>(next) };
    // SAFETY: what the program has called, with its own argument.
    unsafe { next(comm) }
}

fn barrier(library: &'static Library, comm: Handle) -> c_int {
    let said = |_: &_| Said::Round(Round::new(CallId::Barrier, comm), None);
    // SAFETY: a barrier has no statuses.
    unsafe { record::around(names::BARRIER, null_mut(), said, |_| pass(library, comm)) }
}

/// `int MPI_Barrier(MPI_Comm)`.
///
/// # Safety
/// As MPI says.
// SAFETY: the name is MPI's, to stand in front of it is what this file is for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Barrier(comm: Handle) -> c_int {
    match of_program() {
        Ok(library) => barrier(library, library.handle(comm)),
        Err(_) => absent(NEXT.name()),
    }
}

/// A Fortran program's barrier.
///
/// # Safety
/// `comm` is readable; `error` is writable, or null where the argument is absent.
unsafe fn of_fortran(comm: *const c_int, error: *mut c_int) {
    let code = match of_program() {
        // SAFETY: the caller's promise.
        Ok(library) => match of_integer(library, unsafe { comm.read() }) {
            Ok(comm) => barrier(library, comm),
            Err(reason) => {
                printable::eprintln!("portcullis: {reason}");
                NOT_THERE
            }
        },
        Err(_) => absent(NEXT.name()),
    };
    if !error.is_null() {
        // SAFETY: the caller's promise.
        unsafe { error.write(code) };
    }
}

/// The handle of C behind Fortran's integer.
fn of_integer(library: &Library, comm: c_int) -> Result<Handle, String> {
    match library.family {
        // The same bits.
        Family::Mpich => Ok(library.handle(comm as Handle)),
        Family::OpenMpi => fortran::converter(library, c"PMPI_Comm_f2c")
            // SAFETY: it takes the integer and returns the handle.
            .map(|convert| unsafe { convert(comm) }),
        Family::Standard => fortran::converter(library, c"PMPI_Comm_fromint")
            // SAFETY: as above.
            .map(|convert| unsafe { convert(comm) }),
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
