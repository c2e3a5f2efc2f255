//! `MPI_Barrier`: by the hardware if a port is configured, else by the library.
#![allow(unsafe_code)]

use crate::names;
use crate::next::{NOT_THERE, Next, absent};
use crate::watch;
use crate::watch::call_args::{CallArgs, Round};
use crate::watch::{fortran, record};
use coll_hwbarr_foreign::barrier::{self, Passed};
use coll_hwbarr_foreign::library::{Family, Handle, Library, of_program};
use mpi_core::coll::CallId;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::OnceLock;

static NEXT: Next = Next::new(c"MPI_Barrier");

/// Performs the barrier and records its exit time if the exit skew is configured.
fn pass(library: &'static Library, comm: Handle) -> c_int {
    let code = pass_on(library, comm);
    // The clock is read before the comparison of the communicators, which takes time.
    if let Some(at) = watch::exit_time()
        && code == 0
        && barrier::is_like_world(library, comm)
    {
        watch::left_barrier(at);
    }
    code
}

/// Performs the barrier in hardware, or calls the next `MPI_Barrier`.
fn pass_on(library: &'static Library, comm: Handle) -> c_int {
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
    // SAFETY: the standard defines the signature of the function with this name;
    // a handle fits one register in all ABIs.
    let next =
        unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn(Handle) -> c_int>(next) };
    // SAFETY: the MPI standard obliges the program to pass a valid communicator.
    unsafe { next(comm) }
}

fn barrier(library: &'static Library, comm: Handle) -> c_int {
    let said = |_: &_| CallArgs::Round(Round::new(CallId::Barrier, comm), None);
    // SAFETY: a barrier has no statuses, and its `CallArgs` contain no pointers.
    unsafe { record::around(names::BARRIER, null_mut(), said, |_| pass(library, comm)) }
}

/// `int MPI_Barrier(MPI_Comm)`.
///
/// # Safety
/// The arguments meet the requirements of `MPI_Barrier` in the MPI standard.
// SAFETY: the symbol must interpose the library function of the same name and signature.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Barrier(comm: Handle) -> c_int {
    match of_program() {
        Ok(library) => barrier(library, library.handle(comm)),
        Err(_) => absent(NEXT.name()),
    }
}

/// Performs the barrier of a Fortran program.
///
/// # Safety
/// `comm` is readable; `error` is writable, or null where the argument is absent.
unsafe fn of_fortran(comm: *const c_int, error: *mut c_int) {
    let code = match of_program() {
        // SAFETY: the caller guarantees that `comm` is readable.
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
        // SAFETY: the caller guarantees that a non-null `error` is writable.
        unsafe { error.write(code) };
    }
}

/// Converts a Fortran handle to a C handle.
fn of_integer(library: &Library, comm: c_int) -> Result<Handle, String> {
    match library.family {
        // In MPICH's ABI, Fortran and C handles have the same bits.
        Family::Mpich => Ok(library.handle(comm as Handle)),
        Family::OpenMpi => fortran::converter(library, c"PMPI_Comm_f2c")
            // SAFETY: the library's conversion function takes the integer and returns the handle.
            .map(|convert| unsafe { convert(comm) }),
        Family::Standard => fortran::converter(library, c"PMPI_Comm_fromint")
            // SAFETY: the library's conversion function takes the integer and returns the handle.
            .map(|convert| unsafe { convert(comm) }),
    }
}

macro_rules! fortran {
    ($($name:ident)*) => {$(
        /// A Fortran symbol of `MPI_Barrier`.
        ///
        /// # Safety
        /// The arguments meet the requirements of `MPI_Barrier` in the MPI standard.
        // SAFETY: the symbol must interpose the library function of the same name and signature.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case)]
        pub unsafe extern "C" fn $name(comm: *const c_int, error: *mut c_int) {
            // SAFETY: the MPI standard obliges the program to pass a readable `comm`;
            // `error` is writable or null.
            unsafe { of_fortran(comm, error) }
        }
    )*};
}

fortran! { mpi_barrier mpi_barrier_ mpi_barrier__ MPI_BARRIER mpi_barrier_f08_ }
