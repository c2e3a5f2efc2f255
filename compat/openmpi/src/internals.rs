//! Symbols inside Open MPI 4.1 that its own Fortran libraries (`libmpi_mpifh.so.40` and those on top of it) ask for.
//!
//! Those libraries turn Fortran's arguments into C's and call the C library, with three liberties:
//! * they read and write fields of the objects that handles are addresses of: the table of attributes of a communicator, the flags of an operator.
//!   So where they are loaded every handle is the address of an object ([`crate::family`]), each word of which is the standard's handle;
//!   a table of attributes is then told by the handle that it is of.
//! * they use functions for [`attributes`], [`strings`] and error handlers, which are here;
//! * they look at variables that say how Open MPI itself is doing, which have the values of a library that is initialized and checks nothing.
//!
//! A data representation and an error handler that are written in Fortran are not served: the calls that make them fail with a sentence.
#![allow(unsafe_code, non_upper_case_globals)]
#![allow(clippy::missing_safety_doc, clippy::too_many_arguments)]

mod attributes;
mod strings;

use crate::entries::*;
use crate::family::{OpenMpiStatus, handle_of_standard};
use compat::Kind;
use std::ffi::{c_char, c_int, c_void};

/// Memory that Open MPI's libraries look at.
#[repr(C, align(16))]
pub struct Room<const SIZE: usize>([u8; SIZE]);

#[unsafe(no_mangle)]
pub static ompi_errcode_intern_lastused: c_int = 0;
#[unsafe(no_mangle)]
pub static ompi_errcodes_intern: Room<256> = Room([0; 256]);
#[unsafe(no_mangle)]
pub static ompi_registered_datareps: Room<256> = Room([0; 256]);
#[unsafe(no_mangle)]
pub static opal_list_item_t_class: Room<256> = Room([0; 256]);
#[unsafe(no_mangle)]
pub static opal_class_init_epoch: c_int = 1;
#[unsafe(no_mangle)]
pub static opal_uses_threads: bool = false;
#[unsafe(no_mangle)]
pub static ompi_mpi_param_check: bool = false;
/// That MPI is initialized.
#[unsafe(no_mangle)]
pub static ompi_mpi_state: c_int = 2;
/// Source and tag are any, nothing was received, no error.
#[unsafe(no_mangle)]
pub static ompi_status_empty: [c_int; 6] = [-1, -1, 0, 0, 0, 0];

const _: () = assert!(size_of::<OpenMpiStatus>() == size_of::<[c_int; 6]>());

/// What Fortran names, as common blocks; a program has its own copies, in front of these.
macro_rules! common_blocks {
    ($($name:ident)*) => { $(
        #[unsafe(no_mangle)]
        pub static $name: Room<64> = Room([0; 64]);
    )* };
}

common_blocks! {
    mpi_fortran_bottom_ mpi_fortran_in_place_ mpi_fortran_unweighted_ mpi_fortran_weights_empty_
    mpi_fortran_argv_null_ mpi_fortran_argvs_null_ mpi_fortran_errcodes_ignore_
    mpi_fortran_status_ignore_ mpi_fortran_statuses_ignore_
}

/// Errors of this layer, as Open MPI's C code sees them.
const SUCCESS: c_int = 0;
const OUT_OF_MEMORY: c_int = -2;
const INTERN: c_int = 17;

/// What Open MPI's libraries do when an object of theirs is made: only a data representation needs one.
#[unsafe(no_mangle)]
pub extern "C" fn opal_class_initialize(_class: *mut c_void) {
    printable::eprintln!(
        "MPI_Register_datarep from Fortran is not served for programs of Open MPI; the process ends"
    );
    // SAFETY: ends the process.
    unsafe { libc::abort() }
}

/// No error handler that is written in Fortran can be made; null says so.
#[unsafe(no_mangle)]
pub extern "C" fn ompi_errhandler_create(
    _object: c_int,
    _function: *const c_void,
    _language: c_int,
) -> usize {
    handle_of_standard(Kind::Errhandler, Kind::Errhandler.null())
}

/// Open MPI's Fortran library reports a failure of its own, after [`ompi_errhandler_create`].
#[unsafe(no_mangle)]
pub extern "C" fn ompi_errhandler_invoke(
    _handler: usize,
    _object: *mut c_void,
    _kind: c_int,
    code: c_int,
    _message: *const c_char,
) -> c_int {
    match code {
        INTERN => {
            printable::eprintln!(
                "an error handler that is written in Fortran is not served for programs of Open MPI; the handler is MPI_ERRHANDLER_NULL"
            );
            code
        }
        code => code,
    }
}

/// The handler of communicators whose errors are fatal.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompi_mpi_errors_are_fatal_comm_handler(
    comm: *mut Handle,
    code: *mut c_int,
) {
    // SAFETY: arguments of an error handler.
    unsafe { PMPI_Abort(*comm, *code) };
}

/// The type of a class and a size, as a C handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompi_datatype_match_size(
    size: c_int,
    class: u16,
    datatype: *mut Handle,
) -> c_int {
    // SAFETY: an output argument, which the program must pass as a valid pointer.
    unsafe { PMPI_Type_match_size(class.into(), size, datatype) }
}
/// `MPI_CONVERSION_FN_NULL`, of which only the address counts.
#[unsafe(no_mangle)]
pub extern "C" fn mpi_conversion_fn_null_() {}

#[unsafe(no_mangle)]
pub extern "C" fn mpi_wtime_f90_() -> f64 {
    // SAFETY: takes nothing.
    unsafe { PMPI_Wtime() }
}

#[unsafe(no_mangle)]
pub extern "C" fn mpi_wtick_f90_() -> f64 {
    // SAFETY: takes nothing.
    unsafe { PMPI_Wtick() }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn mpi_aint_add_f90_(
    base: *const isize,
    displacement: *const isize,
) -> isize {
    // SAFETY: arguments of Fortran.
    unsafe { base.read().wrapping_add(displacement.read()) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn mpi_aint_diff_f90_(first: *const isize, second: *const isize) -> isize {
    // SAFETY: arguments of Fortran.
    unsafe { first.read().wrapping_sub(second.read()) }
}

/// What Open MPI's library of the C++ bindings, which MPI 3.0 has removed, asks for; programs that are only linked to it run.
fn no_cxx(what: &str) {
    printable::eprintln!(
        "{what} of the C++ bindings, which MPI 3.0 has removed, are not served for programs of Open MPI"
    );
}

#[unsafe(no_mangle)]
pub extern "C" fn ompi_attr_create_keyval(
    _of: c_int,
    _copy: usize,
    _delete: usize,
    _key: *mut c_int,
    _extra: *mut c_void,
    _flags: c_int,
    _bindings: *mut c_void,
) -> c_int {
    no_cxx("attributes");
    INTERN
}

#[unsafe(no_mangle)]
pub extern "C" fn ompi_op_set_cxx_callback(_op: usize, _function: usize) {
    no_cxx("operators of the program");
    // SAFETY: ends the process, which would combine with a function that does not exist.
    unsafe { libc::abort() }
}
